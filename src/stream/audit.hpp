// What became of what was asked for: a note in the log for each outcome, which the rows of files name.
#pragma once

#include "stream/stream.hpp"

namespace pario::stream::audit {

/// How a file is buffered, or why it is not.
struct Outcome {
  std::string_view specification = {};
  Reason reason = Reason::none;
  bool stdio = false;          ///< the buffer is that of a stdio stream
  std::uint64_t buffers = 0;   ///< of a file; 0: as many as were asked for
  std::string_view lost = {};  ///< why buffers do not survive a killed process; empty: they do, or need not
  bool operator==(const Outcome&) const = default;
};

/// Whether the row of a file (null: not traced) says that it was not buffered, or not to its end.
bool is_troubled(const trace::Record* record);
/// Enters the outcome in the row of a file.
void enter(trace::Record* record, const Outcome& outcome, const hints::StreamHints& hints);
/// In the child of a fork, whose log is new.
void forget();

}  // namespace pario::stream::audit
