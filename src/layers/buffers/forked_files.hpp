// Files that this process has closed, and of which its children may still have descriptors.
#pragma once

#include <cstddef>

#include "layers/buffers/system_calls.hpp"

namespace pario::buffers {

/// Remembers such files until the children have ended, for the case that the process opens them
/// again. The registry's lock is held.
class ForkedFiles {
 public:
  void add(FileId id);
  /// True, too, for files that were forgotten because there were too many.
  bool contains(FileId id);
  void clear() { count_ = 0; }

 private:
  static constexpr std::size_t kMostFiles = 64;

  bool is_listed(FileId id) const;

  FileId files_[kMostFiles] = {};
  std::size_t count_ = 0;  ///< more than kMostFiles: any file may be one of them
};

}  // namespace pario::buffers
