// Who asks, of what. Inside room lab.
#pragma once

#include <memory>
#include <string>

#include "lab/lab.hpp"
#include "lab/operations.hpp"

namespace pario::lab {

inline Lab& lab() { return *static_cast<Lab*>(::fuse_get_context()->private_data); }
inline Client caller() { return client_of(lab().settings.who, ::fuse_get_context()->pid); }
inline std::string real(const char* path) { return lab().store.path(path); }

/// What an open file is to the kernel.
using Handle = std::shared_ptr<File>;
inline File* file_of(const fuse_file_info* info) { return reinterpret_cast<Handle*>(info->fh)->get(); }

}  // namespace pario::lab
