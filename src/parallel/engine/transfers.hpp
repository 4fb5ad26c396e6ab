// The reads and writes of a file, in the order of the program's calls: independent and collective,
// blocking, split and non-blocking.
#pragma once

#include <memory>
#include <optional>

#include "parallel/engine/collective.hpp"
#include "parallel/engine/context.hpp"
#include "parallel/engine/kept_writes.hpp"
#include "parallel/engine/started_calls.hpp"

namespace pario::engine {

/// Keeps the order between the accesses of one rank and its kept writes. Threads and errors: see
/// SharedFile.
class Transfers {
 public:
  explicit Transfers(FileContext& context)
      : context_(context), kept_(context), collective_(context, kept_), started_(context) {}

  /// Collective, while the file is opened. Fails the Comm if memory cannot be shared.
  void open(std::uint64_t memory, const char* call);
  /// The collective calls of the file, also those that move no data. Started ones use it in their
  /// thread, and other calls only after finish_started().
  CollectiveCalls& calls() { return *calls_; }

  base::Result<std::uint64_t> run(plan::Direction direction, const pattern::Access& access,
                                  With with, const char* call);
  base::Result<std::uint64_t> move_run(plan::Direction direction, base::Extent where,
                                       std::byte* memory, With with, const char* call);
  std::shared_ptr<Operation> start(plan::Direction direction, const pattern::Access& access,
                                   With with, const char* call);
  void refuse(plan::Direction direction, const base::Error& error, const char* call);
  void start_refusal(plan::Direction direction, const base::Error& error, const char* call);
  void miss(std::optional<plan::Direction> direction, const base::Error& error, const char* call);

  /// Waits for started collective calls.
  void finish_started() { started_.finish_collective(); }
  /// Waits for started independent calls of this rank.
  void finish_independent() { started_.finish_independent(); }
  /// Collective: finishes started collective calls and writes all kept bytes, except those in
  /// windows of the node: their holes may be filled until all ranks have come. Returns the error of
  /// all ranks, or a deferred one of this rank.
  base::Status flush();
  KeptWrites& kept_writes() { return kept_; }

 private:
  using Count = base::Result<std::uint64_t>;

  bool is_quick(plan::Direction direction, const pattern::Access& access,
                const AccessPolicy& policy) const;
  bool is_kept(plan::Direction direction, const pattern::Access& access,
               const AccessPolicy& policy) const;
  std::shared_ptr<Operation> start_quick_write(const pattern::Access& access, With with,
                                               const char* call);
  Count run_independent(plan::Direction direction, const pattern::Access& access, const char* call,
                        const AccessPolicy& policy);
  Count run_in_order(plan::Direction direction, const pattern::Access& access,
                     const pattern::Summary& summary, const AccessPolicy& policy,
                     Statistics& statistics);

  FileContext& context_;
  KeptWrites kept_;
  CollectiveAccess collective_;
  std::unique_ptr<CollectiveCalls> calls_;
  StartedCalls started_;  // last: its threads use the other members
};

}  // namespace pario::engine
