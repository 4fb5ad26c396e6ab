// File systems this process has met: each is noted once.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "base/base.hpp"

namespace pario::trace {

/// A file by descriptor or, when that is negative, by path: what a question to the kernel is asked of.
struct Target {
  int descriptor = -1;
  const char* path = nullptr;

  int status(struct stat& out) const { return descriptor >= 0 ? base::status_of(descriptor, out) : base::status_of(path, out); }
};

struct FileSystem {
  std::uint64_t device;
  std::uint64_t id;              ///< of the note; from 1
  const char* layout_attribute;  ///< the extended attribute that tells a file's striping; null: there is none
};

class FileSystems {
 public:
  /// The file system of `target`, noted when it is new. Null when there are more than kMost.
  const FileSystem* get(const Target& target, std::uint64_t device);

 private:
  static constexpr std::uint32_t kMost = 256;

  const FileSystem* find(std::uint64_t device) const;

  std::uint64_t lock_ = 0;
  std::uint32_t count_ = 0;
  FileSystem known_[kMost] = {};
};

}  // namespace pario::trace
