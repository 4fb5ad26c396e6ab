// Threads of pario's own for non-blocking calls: one per file for collective ones, in their order, and a few of the process for independent
// ones. Started when first needed. They take no signals, and what they do counts as inside MPI-IO.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "engine/engine.hpp"

namespace pario::engine {

/// A call that somebody else carries out.
class Task final : public Operation {
 public:
  using Work = std::function<base::Result<std::uint64_t>()>;
  explicit Task(Work work) : work_(std::move(work)) {}

  bool done() const override;
  void wait() override;
  const base::Result<std::uint64_t>& result() const override { return result_; }

  /// Carries it out, once.
  void run();
  /// Nobody does so by himself: done() and wait() call `progress`, which must run() it in the end.
  void carried_out_by(std::function<void()> progress) { progress_ = std::move(progress); }

 private:
  Work work_;
  std::function<void()> progress_ = {};
  base::FutexWord finished_{0};
  base::Result<std::uint64_t> result_{std::uint64_t{0}};
};

/// One thread that runs tasks in their order.
class Worker {
 public:
  Worker() = default;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// False: no thread is to be had; the task was not taken.
  bool submit(std::shared_ptr<Task> task);
  /// Until all that was submitted is done, or an Error of `patience`.
  void drain(const comm::Patience& patience);
  /// Tasks taken and not yet done.
  std::size_t waiting() const;

 private:
  static void* enter(void* worker);
  void loop();
  bool start();
  void changed();
  template <class Condition>
  void sleep_until(std::unique_lock<std::mutex>& lock, Condition condition);

  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<Task>> tasks_;
  std::size_t unfinished_ = 0;
  bool ending_ = false;
  pthread_t thread_ = {};
  base::FutexWord changes_{0};        // not a condition variable: that of a forked child could never be destroyed
  std::atomic<pid_t> started_in_{0};  // the process whose thread it is; 0: none yet
};

/// Gives a task to the threads of this process; runs it at once where there is no thread to be had.
void submit_to_process(const std::shared_ptr<Task>& task);

}  // namespace pario::engine
