// Collective accesses: from the accesses of all ranks to a plan, and through the exchange or
// directly to the file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/engine/collective_calls.hpp"
#include "parallel/engine/context.hpp"
#include "parallel/engine/kept_writes.hpp"
#include "parallel/plan/plan.hpp"

namespace pario::engine {

/// Executes collective accesses of a file. All public functions are collective over the ranks of
/// `calls`. Has no state of its own.
class CollectiveAccess {
 public:
  CollectiveAccess(FileContext& context, KeptWrites& kept) : context_(context), kept_(kept) {}

  /// Reads or writes the accesses of all ranks. Returns the bytes of this rank, or for reads those
  /// before the end of the file. Errors are the same on all ranks, except in series of
  /// calls (see RunAhead): these return a rank's own error to that rank, and the next meeting
  /// returns it to the others.
  base::Result<std::uint64_t> run(CollectiveCalls& calls, plan::Direction direction,
                                  const pattern::Access& access, const char* name,
                                  const AccessPolicy& policy);
  /// run() of an access of one run of bytes, under a plain policy and without kept writes.
  base::Result<std::uint64_t> move_run(CollectiveCalls& calls, plan::Direction direction,
                                       base::Extent where, std::byte* memory, const char* name,
                                       const AccessPolicy& policy);
  /// A run that has begun in RunAhead: the number of its call, and whether it has to wait for
  /// writes of other ranks, or to leave out bytes.
  struct BegunRun {
    std::uint64_t number;
    bool may_wait;
  };
  /// True if the next call is one of a series in which this rank moves one run. Such a call may be
  /// made in two parts, of which the first does not wait.
  static bool expects_run(CollectiveCalls& calls, plan::Direction direction);
  static BegunRun begin_run(CollectiveCalls& calls, plan::Direction direction, base::Extent where,
                            const char* name);
  base::Result<std::uint64_t> finish_run(CollectiveCalls& calls, BegunRun begun,
                                         plan::Direction direction, base::Extent where,
                                         std::byte* memory, const char* name,
                                         const AccessPolicy& policy);
  /// Takes part in run() of the other ranks with an error, which all ranks return.
  void refuse(CollectiveCalls& calls, plan::Direction direction, const base::Error& error,
              const char* name, const AccessPolicy& policy);
  /// Exchanges and writes merged collective writes, if there are any.
  base::Status flush_merged(CollectiveCalls& calls);
  /// Exchanges and writes all kept bytes, those of independent writes, too, whose pieces may lie
  /// side by side. Returns the error of all ranks.
  base::Status flush_kept(CollectiveCalls& calls);
  Call describe_call(plan::Direction direction, const char* name, const AccessPolicy& policy) const;

 private:
  using Count = base::Result<std::uint64_t>;
  using Summaries = base::Result<std::vector<pattern::Summary>>;

  /// The arguments and the state of one access.
  struct Access;

  template <class Work>
  Count count_call(plan::Direction direction, const char* name, const Work& work);
  Count meet_and_execute(Access& access);
  Count run_without_meeting(Access& access);
  Count finish_without_meeting(Access& access, std::uint64_t number);
  Count move_in_order(Access& access, std::uint64_t number);
  base::Error fail_all(const base::Error& error, const char* name);
  Count defer_outcome(CollectiveCalls& calls, const char* name, const Count& mine);
  Summaries gather_summaries(CollectiveCalls& calls, const Call& call, Statistics& statistics);
  Count execute(Access& access, std::span<const pattern::Summary> ranks);
  static bool begin_series(const Access& access, std::span<const pattern::Summary> ranks,
                           plan::Way way);
  Count execute_alone(Access& access);
  Count execute_atomic(Access& access, std::span<const pattern::Summary> ranks, plan::Plan plan,
                       bool windows);
  Count execute_windows(Access& access, const plan::Plan& plan);
  Count execute_directly(Access& access);
  /// Shares an error of any rank, of this call or deferred, with all ranks.
  Count share_outcome(Access& access, const Count& mine);
  base::Status verify_together(Access& access);
  Count merge(Access& access, std::span<const pattern::Summary> ranks);
  base::Status exchange_kept(CollectiveCalls& calls, const KeptBytes::Batch& batch,
                             const AccessPolicy& policy, Statistics& statistics);
  Count add_to_merged(Access& access, std::span<const pattern::Summary> ranks);
  plan::Plan make_plan(const Access& access, std::span<const pattern::Summary> ranks) const;
  plan::Situation describe_situation(const Access& access,
                                     std::span<const pattern::Summary> ranks) const;

  FileContext& context_;
  KeptWrites& kept_;
};

}  // namespace pario::engine
