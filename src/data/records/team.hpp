// Threads that work together, while the calling thread shows their progress.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "core/base/base.hpp"

namespace pario::records {

/// Receives the bytes done and the total, at intervals and on the calling thread; false: stop.
using Show = std::function<bool(std::uint64_t done, std::uint64_t whole)>;

/// The progress of work, and the request to stop it.
class Meter {
 public:
  explicit Meter(Show show = {}, std::uint64_t whole = 0) : show_(std::move(show)), whole_(whole) {}
  void expect(std::uint64_t whole) { whole_ = whole; }
  void add(std::uint64_t bytes) { done_.fetch_add(bytes, std::memory_order_relaxed); }
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
  /// Calls the Show function. After false, run_team() returns the Error ECANCELED.
  bool show() { return !show_ || show_(done_.load(std::memory_order_relaxed), whole_); }

 private:
  Show show_;
  std::uint64_t whole_;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<bool> stopped_ = false;
};

/// Runs work(0) to work(workers - 1), each on a thread of its own. Returns the first Error; the
/// other threads see meter.is_stopped() and end.
base::Status run_team(unsigned workers, Meter& meter,
                      const std::function<base::Status(unsigned worker)>& work);

}  // namespace pario::records
