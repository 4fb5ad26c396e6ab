// The part of the log about one buffered file: its counters and the outcome of its setting.
#pragma once

#include "layers/buffers/audit.hpp"
#include "layers/buffers/file_context.hpp"

namespace pario::buffers {

/// Reports one file to the log. The caller holds the file's lock.
class FileReport {
 public:
  /// `context` outlives this object.
  void start(const FileContext& context, const Origin& origin);
  /// Adds the statistics since the last call to the file's row.
  void publish(Reason reason);
  /// Stores the buffering of the file, or the reason why it is not buffered.
  void log_outcome(Reason reason);
  /// Stores it unless the row already shows a failure.
  void log_unless_failed(Reason reason);
  /// In the child of a fork: the row is in the parent's log.
  void reset_in_child() { origin_ = {}; }

 private:
  audit::Outcome make_outcome(Reason reason) const;

  const FileContext* context_ = nullptr;
  Origin origin_ = {};
  Statistics published_ = {};
};

}  // namespace pario::buffers
