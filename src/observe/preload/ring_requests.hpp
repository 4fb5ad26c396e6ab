// The meaning of entries in a submission queue of io_uring.
#pragma once

#include "observe/preload/rings.hpp"

namespace pario::preload::rings {

enum class Meaning : std::uint8_t {
  no_file,  ///< a timer, a socket, a pipe, a file that is not traced
  request,  ///< counted at its completion
  unknown   ///< an operation on files that is not attributed to one
};

/// Interprets a submission at the moment `now`. `safe`: memory that it points to may be read,
/// because the kernel has not taken it yet. Called in_tracer().
Meaning interpret(const Ring& ring, const io_uring_sqe& entry, bool safe, std::uint64_t now,
                  Request& out);

/// Counts a request that is complete with `result`.
void complete(Ring& ring, const Request& request, std::int32_t result, std::uint64_t now);

}  // namespace pario::preload::rings
