// Threads that do one thing together, while the caller's shows how far they are.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "core/base/base.hpp"

namespace pario::records {

/// Bytes done and in all, now and then and on the thread that called; false: stop.
using Show = std::function<bool(std::uint64_t done, std::uint64_t whole)>;

/// How far a piece of work is, and whether it is to go on.
class Meter {
 public:
  explicit Meter(Show show = {}, std::uint64_t whole = 0) : show_(std::move(show)), whole_(whole) {}
  void expect(std::uint64_t whole) { whole_ = whole; }
  void add(std::uint64_t bytes) { done_.fetch_add(bytes, std::memory_order_relaxed); }
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  /// Asks the one who waits; what it says is an Error (ECANCELED) of run_team.
  bool show() { return !show_ || show_(done_.load(std::memory_order_relaxed), whole_); }

 private:
  Show show_;
  std::uint64_t whole_;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<bool> stopped_ = false;
};

/// Runs work(0) to work(workers - 1), each on a thread of its own. The first Error is returned; the
/// others see meter.stopped() and end.
base::Status run_team(unsigned workers, Meter& meter,
                      const std::function<base::Status(unsigned worker)>& work);

}  // namespace pario::records
