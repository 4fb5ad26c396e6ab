// Write-behind: keeps a rank's small independent writes in memory and writes them together (hint
// pario_write_behind).
#pragma once

#include <cstdint>
#include <mutex>

#include "parallel/engine/context.hpp"
#include "parallel/engine/deferred_error.hpp"
#include "parallel/engine/kept_bytes.hpp"
#include "parallel/engine/worker.hpp"

namespace pario::engine {

/// Writes kept bytes with independent requests; returns an error as a deferred one.
base::Status write_kept_bytes(FileContext& context, const pattern::Access& access);

/// The writes of one file and rank. Thread-safe. Errors of the writes go to `errors`.
class WriteBehind {
 public:
  WriteBehind(FileContext& context, DeferredError& errors) : context_(context), errors_(errors) {}

  /// Copies the bytes of a write. Half of the `bound` bytes collects writes; when it is full, a
  /// thread writes it, and the other half collects.
  void add(const pattern::Access& access, const pattern::Summary& summary, std::uint64_t bound);
  /// Starts to write bytes older than `delay_ns` at time `now` of base::monotonic_ns().
  void start_old(std::uint64_t delay_ns, std::uint64_t now);
  /// Writes all kept bytes before it returns.
  void flush();
  /// Removes and returns the kept bytes; those of a full half are in the file.
  KeptBytes::Batch take_all();

  bool overlaps(base::Extent where) const;
  /// The end of the last byte that may not be in the file yet.
  std::uint64_t end() const;

 private:
  void start_batch();
  KeptBytes::Batch take_rest();

  FileContext& context_;
  DeferredError& errors_;
  mutable std::mutex mutex_;
  KeptBytes bytes_;
  std::uint64_t oldest_ns_ = 0;  // time of the first write in bytes_
  base::Extent writing_ = {};    // hull of the bytes that the worker may be writing
  Worker worker_;                // last: ends first
};

}  // namespace pario::engine
