// The files beneath a directory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/base.hpp"

namespace pario::records {

struct TreeFile {
  std::string name;  ///< relative to the directory
  std::uint64_t size = 0;
  std::uint32_t mode = 0;
  std::int64_t modified = 0;
};
/// Lists all regular files, and links to such, sorted by the bytes of their names.
base::Result<std::vector<TreeFile>> files_of(const std::string& directory);

}  // namespace pario::records
