// Threads of pario for non-blocking calls and kept writes: one per file for collective calls, in
// their order, and a few per process for independent ones.
//
// Threads start at the first task, block all signals, and count as inside MPI-IO.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "parallel/engine/engine.hpp"

namespace pario::engine {

/// A call that another thread, or a later call of the program, executes.
class Task final : public Operation {
 public:
  using Work = std::function<base::Result<std::uint64_t>()>;
  explicit Task(Work work) : work_(std::move(work)) {}

  bool is_done() const override;
  void wait() override;
  void pause(std::uint64_t longest_ns) override;
  const base::Result<std::uint64_t>& result() const override { return result_; }

  /// Executes the call; called once.
  void run();
  /// Lets no thread run the task: is_done() and wait() call `progress`, which must run() it
  /// eventually.
  void set_progress(std::function<void()> progress) { progress_ = std::move(progress); }

 private:
  Work work_;
  std::function<void()> progress_ = {};
  base::FutexWord finished_{0};
  base::Result<std::uint64_t> result_{std::uint64_t{0}};
};

/// A call that is finished when it has been started.
class FinishedCall final : public Operation {
 public:
  explicit FinishedCall(base::Result<std::uint64_t> result) : result_(std::move(result)) {}
  bool is_done() const override { return true; }
  void wait() override {}
  void pause(std::uint64_t) override {}
  const base::Result<std::uint64_t>& result() const override { return result_; }

 private:
  base::Result<std::uint64_t> result_;
};

/// One thread that runs tasks in their order.
class Worker {
 public:
  Worker() = default;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// Queues a task. False: no thread could be started, and the task was not queued.
  bool submit(std::shared_ptr<Task> task);
  /// Waits until all submitted tasks are finished, or until `patience` returns an Error.
  void drain(const comm::Patience& patience);
  /// Tasks queued and not yet finished.
  std::size_t count_unfinished() const;

 private:
  static void* enter(void* worker);
  void loop();
  bool start();
  void wake();
  template <class Condition>
  void sleep_until(std::unique_lock<std::mutex>& lock, Condition condition);

  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<Task>> tasks_;
  std::size_t unfinished_ = 0;
  bool ending_ = false;
  pthread_t thread_ = {};
  base::FutexWord changes_{0};  // not a condition variable: a forked child could never destroy it
  std::atomic<pid_t> started_in_{0};  // the process of the thread; 0: not started
};

/// Queues a task for the threads of this process; runs it at once if no thread could be started.
void submit_to_process(const std::shared_ptr<Task>& task);

}  // namespace pario::engine
