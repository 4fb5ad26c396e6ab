// The facts that decide how the accesses of a file are executed.
#pragma once

#include "core/hints/hints.hpp"
#include "core/layout/layout.hpp"

namespace pario::engine {

/// Immutable while calls use it; replaced as a whole when hints or the atomic mode change. The same
/// on all ranks.
struct AccessPolicy {
  hints::FileHints hints = {};
  layout::StripeLayout layout = {};
  bool atomic = false;
  bool one_node = true;  ///< all ranks of the file share one node

  /// True if writes may be written after the call has returned.
  bool may_keep_writes() const {
    return hints.pario_write_behind > 0 || hints.pario_merge_collectives > 0;
  }
  /// True if a call that moves one run of bytes consists of that transfer, and of nothing else.
  bool is_plain() const {
    return !atomic && !may_keep_writes() && !hints.pario_verify && !hints.pario_check;
  }
  /// True if ranks need not wait for each other in collective calls without exchange.
  bool may_run_ahead() const {
    return hints.pario_run_ahead != hints::Choice::disable && is_plain();
  }
};

/// True if a rank sees the bytes that another rank wrote before the two communicated. Ranks of
/// one node share its page cache; between nodes the locks of the file system must keep all caches
/// coherent. Merged collective writes wait for MPI_File_sync; the writes of pario_write_behind
/// reach the file before the rank communicates.
bool visible_at_once(const AccessPolicy& policy);

}  // namespace pario::engine
