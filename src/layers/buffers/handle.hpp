// Open descriptions of a buffered file, and their offsets.
#pragma once

#include <cstdint>

#include "layers/buffers/system_calls.hpp"

namespace pario::buffers {

class BufferedFile;

/// One open description. The lock of its file guards it.
struct Handle {
  BufferedFile* file = nullptr;  ///< null: not in use
  Handle* next = nullptr;
  std::uint64_t offset = 0;  ///< of an appending handle: the expected offset of its next byte
  int descriptor = -1;
  std::uint32_t references = 0;
  bool reads = false, writes = false, appends = false;
  std::uint64_t next_read = 0;         ///< the offset at which a sequential reader continues
  std::uint32_t sequential_reads = 0;  ///< in succession
  bool busy = false;                   ///< a read at the handle's offset is in progress
  std::uint32_t write_calls = 0;       ///< since the program opened it
  bool writes_once = false;            ///< one write in the last opening of the file, or none
  bool rewound = false;  ///< appends, and starts at offset 0, independent of the kernel's
  long error = 0;        ///< deferred: -errno of a write that has failed, not reported yet
  /// The offset that a write in progress at the handle's offset, which has moved already, has
  /// reached.
  std::uint64_t copying_from = kNotCopying;

  static constexpr std::uint64_t kNotCopying = ~std::uint64_t{0};
};

/// Moves the kernel's offset of an appending handle to 0 if the handle was rewound.
void apply_rewind(Handle& handle);

/// The open descriptions of one file.
class HandleList {
 public:
  void add(Handle& handle);
  void remove(Handle& handle);
  void clear() {
    first_ = nullptr;
    unseen_error_ = 0;
  }
  bool is_empty() const { return first_ == nullptr; }
  bool has_writer() const;
  /// Stores the offsets in the kernel.
  void store_offsets();
  /// Reads the offsets from the kernel; false if a descriptor is no longer open on the file.
  bool load_offsets(FileId id);

  /// Calls a function for each open description.
  template <class Visit>
  void for_each(Visit visit) {
    for (Handle* handle = first_; handle != nullptr; handle = handle->next) visit(*handle);
  }
  /// Keeps the error of a write for each handle, and for the next one if none reports it before.
  void defer_error(long error);
  /// Returns and clears the deferred error of a handle (-errno or 0).
  long report_error(Handle& handle);

 private:
  Handle* first_ = nullptr;
  long unseen_error_ = 0;
};

}  // namespace pario::buffers
