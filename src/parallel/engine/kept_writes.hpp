// The kept writes of one rank: bytes that are written after the call has returned. No other
// component delays writes of a shared file.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "parallel/engine/context.hpp"
#include "parallel/engine/deferred_error.hpp"
#include "parallel/engine/merged_writes.hpp"
#include "parallel/engine/write_behind.hpp"

namespace pario::engine {

/// Small independent writes (hint pario_write_behind) and this rank's part of merged collective
/// writes (pario_merge_collectives), with their deferred errors. Only MergedWrites is collective:
/// CollectiveAccess exchanges it. Thread-safe.
///
/// From the first kept write on, the object is in a registry of the process, through which
/// write_kept_writes(), the delay thread and exit(3) reach it.
class KeptWrites {
 public:
  explicit KeptWrites(FileContext& context) : context_(context), behind_(context, errors_) {}
  /// Writes this rank's kept bytes; an error is lost.
  ~KeptWrites();
  KeptWrites(const KeptWrites&) = delete;
  KeptWrites& operator=(const KeptWrites&) = delete;

  /// True if the bytes of an independent access should be kept in memory (write-behind).
  static bool keeps(plan::Direction direction, const pattern::Summary& summary,
                    const AccessPolicy& policy);
  /// True if collective accesses are merged. The same on all ranks.
  static bool merges(plan::Direction direction, const AccessPolicy& policy);

  /// Copies an independent write for which keeps() is true.
  void add(const pattern::Access& access, const pattern::Summary& summary,
           const AccessPolicy& policy);
  /// Writes this rank's merged bytes if they overlap `span`. Returns the error of that write.
  base::Status flush_overlapping_merged(base::Extent span);
  /// Writes kept independent writes if they overlap `span`; errors are deferred.
  void flush_overlapping(base::Extent span);
  /// Writes all kept independent writes; errors are deferred.
  void flush();
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
  WriteBehind behind_;
};

}  // namespace pario::engine
