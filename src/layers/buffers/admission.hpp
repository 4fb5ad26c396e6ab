// Admission: decides which open descriptions are buffered.
#pragma once

#include <sys/stat.h>

#include <string_view>

#include "layers/buffers/buffers.hpp"

namespace pario::buffers {

/// Gets the status of a descriptor. False for directories and O_PATH, which have no bytes to
/// buffer.
bool has_bytes(int descriptor, int flags, struct stat& status);

/// Returns the reason why only the kernel can serve an open description; Reason::none: it can be
/// buffered.
Reason find_obstacle(int flags, const hints::StreamHints& hints, const struct stat& status);

/// Fills the unset hints of a new file. Clears `read_once` for local files, which have one copy per
/// node in the kernel's page cache, and for files that are written.
void prepare_hints(hints::StreamHints& hints, int descriptor, int flags, std::string_view path);

}  // namespace pario::buffers
