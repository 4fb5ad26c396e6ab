// Non-blocking calls: collective ones in their order, in a thread of the file or while the program
// waits for them; independent ones in the threads of the process.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "parallel/engine/context.hpp"
#include "parallel/engine/worker.hpp"

namespace pario::engine {

/// Counts the independent calls in flight. Outlives the file if one of them is late.
class InFlightCount {
 public:
  void add() { count_.fetch_add(1); }
  void remove();
  void drain(const comm::Patience& patience) const;

 private:
  base::FutexWord count_{0};
};

/// The started calls of one file and rank. start_collective() and finish_collective() are called by
/// one thread at a time.
class StartedCalls {
 public:
  explicit StartedCalls(FileContext& context) : context_(context) {}
  /// Waits for all started calls.
  ~StartedCalls();
  StartedCalls(const StartedCalls&) = delete;
  StartedCalls& operator=(const StartedCalls&) = delete;

  std::shared_ptr<Operation> start_independent(Task::Work work);
  /// Queues `work`, which makes a collective call of the sequence of the file. Calls run in their
  /// order.
  std::shared_ptr<Operation> start_collective(Task::Work work);
  /// True if collective calls have been started and may not be finished.
  bool may_run() const { return may_run_; }
  /// True if some are not finished.
  bool has_unfinished() const;
  /// Waits until all collective calls are finished, to keep the order of the program.
  void finish_collective();
  void finish_independent() { in_flight_->drain(context_.patience()); }

 private:
  bool uses_thread() const;
  void run_deferred();

  FileContext& context_;
  std::shared_ptr<InFlightCount> in_flight_ = std::make_shared<InFlightCount>();
  bool may_run_ = false;  // collective calls; used by the thread that starts and finishes them
  std::mutex deferred_mutex_;
  std::deque<std::shared_ptr<Task>> deferred_;
  Worker worker_;  // last: ends first
};

}  // namespace pario::engine
