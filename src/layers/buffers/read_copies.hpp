// The copies of a file that serve its reads without system calls.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>

#include "layers/buffers/file_context.hpp"
#include "layers/buffers/node_copy.hpp"
#include "layers/buffers/process_copy.hpp"

namespace pario::buffers {

/// Attaches the copies that the hints of a file request, and detaches them when the process writes
/// the file. The caller holds the file's lock.
class ReadCopies {
 public:
  /// `context` outlives this object; `status`: the file as it is opened.
  void start(FileContext& context, const struct stat& status);
  void detach();
  /// Detaches the process copy when the file may change, or is no longer buffered.
  void detach_process_copy();
  /// Resets the state in the child of a fork.
  void reset_in_child();

  bool has_node_copy() const { return node_copy_ != nullptr; }
  /// Makes the next read check whether the process copy is valid.
  void expire();
  /// Serves a read (as preadv(2)), or kPass.
  long read(const Handle& handle, std::span<const iovec> pieces, std::uint64_t offset) {
    if (const ProcessCopy* copy = find_valid_copy(handle)) return copy->read(pieces, offset);
    if (node_copy_ == nullptr) [[likely]]
      return kPass;
    return node_copies::read(*node_copy_, handle.descriptor, pieces, offset);
  }
  /// The valid process copy of the file; null if it has none or if the process writes it.
  const ProcessCopy* find_valid_copy(const Handle& handle) {
    if (process_copy_ != nullptr && process_copy_->is_valid(handle.descriptor))
      return process_copy_;
    return context_->hints.whole == 0 ? nullptr : attach_process_copy(handle);
  }
  /// The size of the process copy, without a check; 0 if there is none.
  std::uint64_t process_copy_size() const {
    return process_copy_ == nullptr ? 0 : process_copy_->size();
  }

 private:
  const ProcessCopy* attach_process_copy(const Handle& handle);

  FileContext* context_ = nullptr;
  NodeCopy* node_copy_ = nullptr;
  ProcessCopy* process_copy_ = nullptr;
  std::uint64_t next_attempt_ns_ = 0;  ///< to attach a process copy
};

}  // namespace pario::buffers
