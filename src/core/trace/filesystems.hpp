// The file systems that this process uses; each has one note in the log.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "core/base/base.hpp"

namespace pario::trace {

/// A file to query, by descriptor or, if that is negative, by path.
struct Target {
  int descriptor = -1;
  const char* path = nullptr;

  int status(struct stat& out) const {
    return descriptor >= 0 ? base::status_of(descriptor, out) : base::status_of(path, out);
  }
};

struct FileSystem {
  std::uint64_t device;
  std::uint64_t id;              ///< of the note, from 1
  const char* layout_attribute;  ///< extended attribute with the layout of a file; null: none
};

class FileSystems {
 public:
  /// Returns the file system of `target` and writes the note of a new one. Null if there are more
  /// than kMost.
  const FileSystem* get(const Target& target, std::uint64_t device);

 private:
  static constexpr std::uint32_t kMost = 256;

  const FileSystem* find(std::uint64_t device) const;

  std::uint64_t lock_ = 0;
  std::uint32_t count_ = 0;
  FileSystem known_[kMost] = {};
};

}  // namespace pario::trace
