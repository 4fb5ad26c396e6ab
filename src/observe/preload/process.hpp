// The ends of process images.
#pragma once

#include <cstdint>

namespace pario::preload {

/// process.end_kind of the log.
enum EndKind : std::uint64_t { kEndExit = 1, kEndImmediate = 2, kEndExec = 3, kEndAbort = 5 };

}  // namespace pario::preload
