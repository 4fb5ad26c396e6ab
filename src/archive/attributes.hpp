// Extended attributes of files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/base.hpp"

namespace pario::archive {

using Attributes = std::vector<std::pair<std::string, std::string>>;

/// Those of an open file, or (-1) of a name, links not followed; without those that say where bytes lie.
base::Status read_attributes(int descriptor, const std::string& path, Attributes& out);
/// All that are possible; the first that is not is the error. What only the system may give (security.*) stays as the file system has it.
base::Status write_attributes(int descriptor, const std::string& path, const Attributes& attributes);

}  // namespace pario::archive
