// The local member: a file of the kernel.
#pragma once

#include <memory>
#include <string>

#include "core/file/file.hpp"

namespace pario::file {

/// open(2), repeated after EINTR. The descriptor is closed by exec and is none of the three
/// standard ones.
base::Result<int> open_descriptor(const std::string& path, int flags, unsigned mode);

/// A file that owns the descriptor. `striping_trouble`: see File.
std::unique_ptr<File> make_posix(std::string path, int descriptor, layout::StripeLayout layout,
                                 std::string striping_trouble = {});

}  // namespace pario::file
