// The members that schemes.cpp registers and other files define.
#pragma once

#include <memory>
#include <string>

#include "core/file/file.hpp"

namespace pario::file {

/// A file in this process's memory, which all who open the same name share, until it is removed.
base::Result<std::unique_ptr<File>> open_memory(OpenRequest request);
base::Status remove_memory(const std::string& name);

}  // namespace pario::file
