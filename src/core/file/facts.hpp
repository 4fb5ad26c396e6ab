// Facts about paths and the places of a file's bytes, from the file system.
#pragma once

#include <string>

#include "core/file/publication.hpp"
#include "core/layout/layout.hpp"

namespace pario::file {

/// A path without links and dots; empty if it does not exist.
std::string real_path(const std::string& path);

layout::StripeLayout layout_of(int descriptor, const std::string& path);

}  // namespace pario::file
