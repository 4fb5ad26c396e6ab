// The lab, the client and the file of the current call of libfuse. Internal to module lab.
#pragma once

#include <memory>
#include <string>

#include "instruments/lab/lab.hpp"
#include "instruments/lab/operations.hpp"

namespace pario::lab {

inline Lab& lab() { return *static_cast<Lab*>(::fuse_get_context()->private_data); }
inline Client caller() { return client_of(lab().settings.client, ::fuse_get_context()->pid); }
inline std::string real(const char* path) { return lab().store.path(path); }

/// The kernel's handle of an open file.
using Handle = std::shared_ptr<File>;
inline File* file_of(const fuse_file_info* info) {
  return reinterpret_cast<Handle*>(info->fh)->get();
}

}  // namespace pario::lab
