// Rings of io_uring that are set up without a call of an exported function, as by a static
// liburing. The kernel shows them in /proc/self/fd, and the number of their submissions in
// /proc/self/fdinfo. Files, bytes and times of the requests stay unknown
// (process.uring_unattributed); a ring that is closed between two looks is missed.
#pragma once

#include "core/trace/trace.hpp"

namespace pario::preload::unseen_rings {

/// Counts the rings, and the submissions since the last look. At most once a second, unless `must`:
/// at the end of the process.
void look(bool must);
/// The same, before a file is closed on which no call has moved bytes: a ring may have done so. At
/// most some dozen times in a process.
void look_for_unused_file();
/// True if no call has moved bytes of a file: look_for_unused_file() belongs before its close.
inline bool is_unused(const trace::Record& record) {
  return record.reads + record.writes + record.maps == 0;
}
/// In the child of a fork, which does not use its parent's rings, before any look(): another thread
/// of the parent may have been inside one.
void forget_all();

}  // namespace pario::preload::unseen_rings
