// Non-blocking calls: collective ones in their order, in a thread of the file or while the program
// waits for them; independent ones in the threads of the process.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "parallel/engine/collective_calls.hpp"
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

  /// Collective, while the file is opened: duplicates the communicator for the worker thread if it
  /// may communicate, because starting a call must not wait for other ranks. False on all ranks of
  /// a node if memory cannot be shared.
  bool make_worker_comm(const char* call);

  std::shared_ptr<Operation> start_independent(Task::Work work);
  /// Queues `work`, which makes its collective call on worker_calls(). Calls run in their order.
  std::shared_ptr<Operation> start_collective(Task::Work work);
  /// Returns the calls for the work of start_collective(), which calls this function. The first
  /// call makes them, because that waits for the other ranks. `blocking`: used if no thread may
  /// communicate.
  CollectiveCalls& worker_calls(CollectiveCalls& blocking, const char* call);

  /// True if collective calls have been started and may not be finished.
  bool may_run() const { return may_run_; }
  /// Waits until all collective calls are finished, to keep the order of the program.
  void finish_collective();
  void finish_independent() { in_flight_->drain(context_.patience()); }

 private:
  void run_deferred();

  FileContext& context_;
  std::shared_ptr<InFlightCount> in_flight_ = std::make_shared<InFlightCount>();
  std::shared_ptr<comm::Comm> worker_comm_;  // null: only the program's thread may communicate
  std::unique_ptr<CollectiveCalls> worker_calls_;
  bool may_run_ = false;  // collective calls; used by the thread that starts and finishes them
  std::mutex deferred_mutex_;
  std::deque<std::shared_ptr<Task>> deferred_;
  Worker worker_;  // last: ends first
};

}  // namespace pario::engine
