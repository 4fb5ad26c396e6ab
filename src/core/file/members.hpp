// The members that schemes.cpp registers and other files define.
#pragma once

#include <memory>
#include <string>

#include "core/file/file.hpp"

namespace pario::file {

/// Opens a file in this process's memory, shared by all openings of one name until it is removed.
base::Result<std::unique_ptr<File>> open_memory(const OpenRequest& request);
base::Status remove_memory(const std::string& name);

}  // namespace pario::file
