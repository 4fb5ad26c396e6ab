// Files that this process has closed while its children may still have descriptors of them.
#pragma once

#include <cstddef>

#include "layers/buffers/system_calls.hpp"

namespace pario::buffers {

/// Remembers such files until the children have ended, in case the process opens them again. The
/// caller holds the registry's lock.
class ForkedFiles {
 public:
  void add(FileId id);
  /// True if the file is one of them, or was forgotten because there were too many.
  bool contains(FileId id);
  void clear() { count_ = 0; }

 private:
  static constexpr std::size_t kMostFiles = 64;

  bool is_listed(FileId id) const;

  FileId files_[kMostFiles] = {};
  std::size_t count_ = 0;  ///< more than kMostFiles: any file may be one of them
};

}  // namespace pario::buffers
