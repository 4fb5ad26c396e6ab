// The kept writes of one rank: bytes that are written after the call has returned. No other
// component delays writes of a shared file.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "parallel/engine/context.hpp"
#include "parallel/engine/deferred_error.hpp"
#include "parallel/engine/merged_writes.hpp"
#include "parallel/engine/node_windows.hpp"
#include "parallel/engine/worker.hpp"
#include "parallel/engine/write_behind.hpp"

namespace pario::engine {

/// Small independent writes (hint pario_write_behind) and this rank's part of merged collective
/// writes (pario_merge_collectives), with their deferred errors. Only MergedWrites is collective:
/// CollectiveAccess exchanges it. Thread-safe.
///
/// If several ranks have opened the file and all are on one node, they keep independent writes
/// together, in NodeWindows; the rank that writes bytes of other ranks gets the error. Otherwise
/// each rank keeps its own, in WriteBehind.
///
/// From the first kept write on, or from watch_windows() on, the object is in a registry of the
/// process, through which write_kept_writes(), the delay thread, MPI_Finalize and exit(3) reach
/// it.
class KeptWrites {
 public:
  explicit KeptWrites(FileContext& context) : context_(context), behind_(context, errors_) {}
  /// Writes this rank's kept bytes, and prints an error.
  ~KeptWrites();
  KeptWrites(const KeptWrites&) = delete;
  KeptWrites& operator=(const KeptWrites&) = delete;

  /// Collective, while the file is opened: makes windows if they can be used. False on all ranks:
  /// memory cannot be shared. No rank keeps a write before all have called this.
  bool share_windows(std::uint64_t unit, const comm::Patience& patience);
  /// The same on all ranks.
  bool has_windows() const { return windows_ != nullptr; }
  /// Called when the file is open: this process writes windows in time, also those of dead ranks.
  void watch_windows();

  /// True if the bytes of an independent access should be kept in memory (write-behind).
  bool keeps(plan::Direction direction, const pattern::Access& access,
             const pattern::Summary& summary, const AccessPolicy& policy) const;
  /// True if collective accesses are merged. The same on all ranks.
  static bool merges(plan::Direction direction, const AccessPolicy& policy);

  /// Copies an independent write for which keeps() is true.
  void add(const pattern::Access& access, const pattern::Summary& summary,
           const AccessPolicy& policy);
  /// Writes this rank's merged bytes if they overlap `span`. Returns the error of that write.
  base::Status flush_overlapping_merged(base::Extent span);
  /// Writes kept independent writes if they overlap `span`; errors are deferred.
  void flush_overlapping(base::Extent span);
  /// Writes all kept independent writes; errors are deferred. With windows also those of the other
  /// ranks: when it returns, all bytes kept before the call are in the file.
  void flush();
  /// Writes the kept independent writes that other ranks could not read otherwise; errors are
  /// deferred. Ranks read through their windows.
  void flush_for_others();
  /// Starts to write independent writes older than their hint allows at time `now`.
  void start_old(std::uint64_t now);
  /// Writes all kept bytes of this rank, merged ones too. Returns the deferred error.
  base::Status save();
  /// The end of the last kept byte of this rank and, merged, of all ranks; 0: no byte is kept.
  std::uint64_t end() const;

  /// True if a write has been kept since the file was opened.
  bool used() const { return registered_; }
  bool has_merged() const { return used() && merged_.any(); }
  bool fits_merged(std::span<const pattern::Summary> ranks, const AccessPolicy& policy) const;
  /// Adds this rank's part of a collective write that fits.
  void add_merged(const pattern::Access& access, base::Extent span,
                  std::span<const pattern::Summary> ranks);
  KeptBytes::Batch take_merged() { return merged_.take_all(); }
  /// Takes the kept independent writes, too.
  KeptBytes::Batch take_all();

  DeferredError& errors() { return errors_; }
  /// Removes the object from the registry: the file is being closed.
  void unregister();

 private:
  void register_once();
  base::Status write_own_merged();

  FileContext& context_;
  DeferredError errors_;
  std::atomic<bool> registered_{false};
  MergedWrites merged_;
  std::shared_ptr<comm::SharedMemory> memory_;  // of windows_
  std::unique_ptr<NodeWindows> windows_;        // null: behind_ keeps the writes
  WriteBehind behind_;
  Worker window_worker_;  // writes old windows; last: ends first
};

}  // namespace pario::engine
