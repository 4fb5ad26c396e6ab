// Where the bytes of a file live, asked of its file system.
#pragma once

#include <string>

#include "layout/layout.hpp"

namespace pario::storage {

/// Of the directory that holds what a path names: "." for a bare name.
std::string directory_of(const std::string& path);

/// Without links and dots; empty: it is not there.
std::string real_path(const std::string& path);

layout::StripeLayout layout_of(int descriptor, const std::string& path);

}  // namespace pario::storage
