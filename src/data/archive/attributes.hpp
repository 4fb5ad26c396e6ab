// Extended attributes of files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/base.hpp"

namespace pario::archive {

using Attributes = std::vector<std::pair<std::string, std::string>>;

/// Reads the attributes of an open file, or (-1) of a name without following links; leaves out
/// the layout's attributes.
base::Status read_attributes(int descriptor, const std::string& path, Attributes& out);
/// Writes all attributes that are possible; returns the first error. Attributes that only the
/// system may set (security.*) are left alone.
base::Status write_attributes(int descriptor, const std::string& path,
                              const Attributes& attributes);

}  // namespace pario::archive
