// Write-behind: small independent writes of a rank that are kept back and written in large pieces (hint pario_write_behind).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "engine/kept.hpp"
#include "engine/queue.hpp"

namespace pario::engine {

/// Of one file and rank. Thread-safe.
class WriteBehind {
 public:
  /// Carries out one access, in any thread. `patience` is that of waits for it.
  using Write = std::function<base::Status(const pattern::Access& access)>;
  WriteBehind(Write write, comm::Patience patience) : write_(std::move(write)), patience_(std::move(patience)) {}

  /// Copies the bytes of a write. In half of `bound` bytes what comes is gathered; what no longer fits goes to the other half, and a thread
  /// writes it from there.
  void keep(const pattern::Access& access, const pattern::Summary& summary, std::uint64_t bound);
  /// What has been kept for that long at `now` (nanoseconds) goes to the thread.
  void hand_over_after(std::uint64_t delay, std::uint64_t now);
  /// Nothing is kept when it returns.
  void flush();

  bool touches(base::Extent where) const;
  std::uint64_t end() const;  ///< of the last byte that may not be in the file yet

  /// The first error of a write that nobody has been told about. A file may leave others here.
  base::Status take_error();
  void leave_error(const base::Status& status);

 private:
  void hand_over();
  void carry_out(const Kept::Batch& batch);

  Write write_;
  comm::Patience patience_;
  mutable std::mutex mutex_;
  Kept kept_;
  std::uint64_t since_ = 0;    // when the first of what is kept came
  base::Extent writing_ = {};  // all that the worker may still be writing lies in there
  std::mutex error_mutex_;
  std::atomic<bool> failed_{false};
  base::Status error_;
  Worker worker_;  // last: ends first
};

}  // namespace pario::engine
