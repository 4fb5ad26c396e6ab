// One rank's direct access between its memory and the file: contiguous, run by run, or through
// sieve windows.
#pragma once

#include <cstdint>
#include <span>

#include "parallel/engine/context.hpp"
#include "parallel/engine/guarded_file.hpp"
#include "parallel/plan/plan.hpp"

namespace pario::engine {

/// Moves one run of bytes, without locks of ranges in atomic mode. The error has no call name and
/// no rank.
MovedRun move_run(FileContext& context, const AccessPolicy& policy, plan::Direction direction,
                  base::Extent where, std::byte* memory);

/// Executes the accesses of one call. Its errors have no call name and no rank. Used by one thread;
/// `policy` and `statistics` must outlive it.
class IndependentAccess {
 public:
  IndependentAccess(FileContext& context, const AccessPolicy& policy, Statistics& statistics);

  /// Moves the bytes of `access`. Returns the bytes moved; reads end at the end of the file.
  base::Result<std::uint64_t> run(plan::Direction direction, const pattern::Access& access,
                                  const pattern::Summary& summary);
  /// Moves the bytes of `access`; with hint pario_verify, reads written bytes back.
  base::Result<std::uint64_t> run_verified(plan::Direction direction, const pattern::Access& access,
                                           const pattern::Summary& summary);
  /// Writes the bytes outside of `except`, run by run. Returns the bytes of the access.
  base::Result<std::uint64_t> write_around(const pattern::Access& access,
                                           const pattern::Summary& summary,
                                           std::span<const base::Extent> except);
  /// Reads the bytes of a finished write back and compares them. Changes no counters.
  base::Status verify(const pattern::Access& access, base::Extent span);

 private:
  using Count = base::Result<std::uint64_t>;
  /// The part of a window that an access touches: from its first to its last byte in it.
  struct Touched {
    base::Extent hull = {};
    std::uint64_t bytes = 0;
  };
  static Touched find_touched(const pattern::Access& access, base::Extent window);
  static base::Extent find_next_window(const pattern::Access& access, base::Extent rest,
                                       std::uint64_t size);

  Count run_unlocked(plan::Direction direction, const pattern::Access& access,
                     const pattern::Summary& summary);
  bool may_sieve(plan::Direction direction);
  Count move_one_run(plan::Direction direction, const pattern::Access& access, base::Extent span);
  Count move_runs(plan::Direction direction, const pattern::Access& access,
                  const pattern::Summary& summary);
  Count move_windows(plan::Direction direction, const pattern::Access& access, base::Extent span,
                     std::uint64_t window);
  Count read_window(pattern::Walker& walker, base::Extent hull, std::byte* image);
  Count write_window(pattern::Walker& walker, const Touched& touched, std::byte* image);
  Count write_full_window(pattern::Walker& walker, base::Extent hull, std::byte* image);
  Count write_runs(pattern::Walker& walker, base::Extent hull);
  Count move_vector(plan::Direction direction, base::Extent run,
                    std::span<const std::span<std::byte>> pieces);
  Count read_extent(base::Extent where, std::byte* to);
  Count write_extent(base::Extent where, const std::byte* from);

  FileContext& context_;
  const AccessPolicy& policy_;
  Statistics& statistics_;
  exchange::Counters& counters_;
  GuardedFile file_;
};

}  // namespace pario::engine
