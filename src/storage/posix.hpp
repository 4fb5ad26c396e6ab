// The member that stands for a file of the kernel.
#pragma once

#include <memory>
#include <string>

#include "storage/storage.hpp"

namespace pario::storage {

/// open(2), waited for through signals; the descriptor is closed by exec, and is none of the three that programs take for granted.
base::Result<int> open_descriptor(const std::string& path, int flags, unsigned mode);

/// Takes the descriptor over. `striping_trouble`: see File.
std::unique_ptr<File> make_posix(std::string path, int descriptor, layout::StripeLayout layout, std::string striping_trouble = {});

}  // namespace pario::storage
