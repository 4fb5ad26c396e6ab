// The lab, the client and the file of the current call of libfuse. Internal to module lab.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "instruments/lab/lab.hpp"
#include "instruments/lab/operations.hpp"

namespace pario::lab {

inline Lab& lab() { return *static_cast<Lab*>(::fuse_get_context()->private_data); }
inline Client caller() { return client_of(lab().settings.client, ::fuse_get_context()->pid); }
inline std::string real(const char* path) { return lab().store.path(path); }

/// The kernel's handle of an open file.
using Handle = std::shared_ptr<LabFile>;
inline LabFile* file_of(const fuse_file_info* info) {
  return reinterpret_cast<Handle*>(info->fh)->get();
}

template <auto operation, MetadataKind kind>
struct Counted;
template <class... Args, int (*operation)(const char*, Args...), MetadataKind kind>
struct Counted<operation, kind> {
  static int call(const char* path, Args... args) {
    if (path == nullptr || std::strcmp(path, "/") != 0) lab().metadata.serve(kind);
    return operation(path, args...);
  }
};
/// An operation that is a request of the metadata server, except on the root of the mount.
template <auto operation, MetadataKind kind>
inline constexpr auto counted = &Counted<operation, kind>::call;

}  // namespace pario::lab
