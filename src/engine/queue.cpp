#include "engine/queue.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

#include "trace/trace.hpp"

namespace pario::engine {
namespace {

constexpr std::uint64_t kLookAgain = 1'000'000'000;
constexpr std::size_t kThreadsOfProcess = 2;

/// A thread inherits the mask of the one that starts it.
bool start_without_signals(pthread_t& thread, void* (*enter)(void*), void* argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&thread, nullptr, enter, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return failed == 0;
}

struct Pool {
  std::array<Worker, kThreadsOfProcess> workers;
};

std::atomic<Pool*> the_pool{nullptr};

/// Never destroyed: its threads end with the process. The child of a fork has none of them and makes its own.
Pool& pool() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { the_pool = nullptr; });
  static_cast<void>(registered);
  Pool* found = the_pool.load();
  if (found != nullptr) return *found;
  auto* made = new Pool;
  if (the_pool.compare_exchange_strong(found, made)) return *made;
  delete made;
  return *found;
}

}  // namespace

bool Task::done() const {
  if (finished_.load(std::memory_order_acquire) == 1) return true;
  if (!progress_) return false;
  progress_();
  return finished_.load(std::memory_order_acquire) == 1;
}

void Task::wait() {
  if (progress_ && !done()) progress_();
  while (finished_.load(std::memory_order_acquire) == 0) base::futex_wait(finished_, 0, kLookAgain);
}

void Task::run() {
  result_ = work_();
  work_ = {};
  finished_.store(1, std::memory_order_release);
  base::futex_wake(finished_);
}

Worker::~Worker() {
  if (started_in_ != ::getpid()) return;
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed();
  pthread_join(thread_, nullptr);
}

bool Worker::start() {
  if (started_in_ == ::getpid()) return true;
  if (!start_without_signals(thread_, &Worker::enter, this)) return false;
  started_in_ = ::getpid();
  return true;
}

void Worker::changed() {
  changes_.fetch_add(1);
  base::futex_wake(changes_);
}

template <class Condition>
void Worker::sleep_until(std::unique_lock<std::mutex>& lock, Condition condition) {
  while (!condition()) {
    const std::uint32_t seen = changes_.load();
    lock.unlock();
    base::futex_wait(changes_, seen, kLookAgain);
    lock.lock();
  }
}

bool Worker::submit(std::shared_ptr<Task> task) {
  {
    const std::scoped_lock lock(mutex_);
    if (!start()) return false;
    tasks_.push_back(std::move(task));
    ++unfinished_;
  }
  changed();
  return true;
}

void Worker::drain(const comm::Patience& patience) {
  if (started_in_ != ::getpid()) return;
  static_cast<void>(comm::wait_until(changes_, [this] { return waiting() == 0; }, patience));
}

std::size_t Worker::waiting() const {
  const std::scoped_lock lock(mutex_);
  return unfinished_;
}

void* Worker::enter(void* worker) {
  const trace::Guard guard(trace::Guard::Kind::mpiio);
  comm::mark_own_thread();
  static_cast<Worker*>(worker)->loop();
  return nullptr;
}

void Worker::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    sleep_until(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::shared_ptr<Task> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task->run();
    lock.lock();
    --unfinished_;
    changed();
  }
}

void submit_to_process(const std::shared_ptr<Task>& task) {
  Worker* best = nullptr;
  for (Worker& worker : pool().workers)
    if (best == nullptr || worker.waiting() < best->waiting()) best = &worker;
  if (!best->submit(task)) task->run();
}

}  // namespace pario::engine
