// Outcomes of settings for buffers: a note in the log for each different outcome, which the rows of
// files name by its number.
#pragma once

#include "layers/buffers/buffers.hpp"

namespace pario::buffers::audit {

/// The buffering of a file, or the reason why it is not buffered.
struct Outcome {
  std::string_view specification = {};
  Reason reason = Reason::none;
  bool stdio = false;         ///< the buffer is that of a stdio stream
  std::uint64_t buffers = 0;  ///< of a file; 0: as many as the hints say
  std::string_view survive_failure =
      {};  ///< the reason why buffers do not survive; empty: they do, or need not
  bool operator==(const Outcome&) const = default;
};

/// True if the row of a file (null: not traced) shows that buffering failed or ended early.
bool has_failure(const trace::Record* record);
/// Stores the outcome in the row of a file.
void log_outcome(trace::Record* record, const Outcome& outcome, const hints::StreamHints& hints);
/// Resets the outcomes in the child of a fork, whose log is new.
void reset_in_child();

}  // namespace pario::buffers::audit
