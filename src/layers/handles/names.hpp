// Names of files in open calls, and whether a name still refers to its file.
#pragma once

#include <sys/stat.h>

#include <optional>

#include "layers/handles/table.hpp"

namespace pario::handles {

/// The name of an open call of a descriptor or a stream. Empty if it is too long, relative to a
/// directory other than the current one, or if the flags or the mode do not allow to keep a handle.
std::optional<Name> name_of(int directory, const char* path, int flags);
std::optional<Name> name_of(const char* path, const char* mode);

/// True if two states are those of one file with the same permissions.
bool is_same(const struct stat& a, const struct stat& b);
/// True if the name of a claimed entry still refers to its file. Watches the name if possible.
bool is_current(Entry& entry);

}  // namespace pario::handles
