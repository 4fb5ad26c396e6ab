#include "parallel/engine/worker.hpp"

#include <unistd.h>

#include <array>
#include <atomic>

#include "core/base/threads.hpp"
#include "core/trace/trace.hpp"

namespace pario::engine {
namespace {

constexpr std::uint64_t kRecheckNs = 1'000'000'000;
constexpr std::size_t kThreadsOfProcess = 2;

/// True if a thread was started (0: not), and not by the parent of a fork. Without a thread, as for
/// most files, no system call is needed.
bool is_of_this_process(pid_t started_in) { return started_in != 0 && started_in == ::getpid(); }

struct Pool {
  std::array<Worker, kThreadsOfProcess> workers;
};

std::atomic<Pool*> current_pool{nullptr};

/// The threads for independent calls. Never destroyed: the threads end with the process. The child
/// of a fork has none of them and makes its own.
Pool& pool() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { current_pool = nullptr; });
  static_cast<void>(registered);
  Pool* found = current_pool.load();
  if (found != nullptr) return *found;
  auto* made = new Pool;
  if (current_pool.compare_exchange_strong(found, made)) return *made;
  delete made;
  return *found;
}

}  // namespace

bool Task::is_done() const {
  if (finished_.load(std::memory_order_acquire) == 1) return true;
  if (!progress_) return false;
  progress_();
  return finished_.load(std::memory_order_acquire) == 1;
}

void Task::wait() {
  if (progress_ && !is_done()) progress_();
  while (finished_.load(std::memory_order_acquire) == 0) base::futex_wait(finished_, 0, kRecheckNs);
}

void Task::pause(std::uint64_t longest_ns) { base::futex_wait(finished_, 0, longest_ns); }

void Task::run() {
  result_ = work_();
  work_ = {};
  finished_.store(1, std::memory_order_release);
  base::futex_wake(finished_);
}

Worker::~Worker() {
  if (!is_of_this_process(started_in_)) return;
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  wake();
  pthread_join(thread_, nullptr);
}

bool Worker::start() {
  if (is_of_this_process(started_in_)) return true;
  if (!base::start_thread(thread_, nullptr, &Worker::enter, this)) return false;
  started_in_ = ::getpid();
  return true;
}

void Worker::wake() {
  changes_.fetch_add(1);
  base::futex_wake(changes_);
}

template <class Condition>
void Worker::sleep_until(std::unique_lock<std::mutex>& lock, Condition condition) {
  while (!condition()) {
    const std::uint32_t seen = changes_.load();
    lock.unlock();
    base::futex_wait(changes_, seen, kRecheckNs);
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
  wake();
  return true;
}

void Worker::drain(const comm::Patience& patience) {
  if (!is_of_this_process(started_in_)) return;
  static_cast<void>(
      comm::wait_until(changes_, [this] { return count_unfinished() == 0; }, patience));
}

std::size_t Worker::count_unfinished() const {
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
    wake();
  }
}

void submit_to_process(const std::shared_ptr<Task>& task) {
  Worker* best = nullptr;
  for (Worker& worker : pool().workers)
    if (best == nullptr || worker.count_unfinished() < best->count_unfinished()) best = &worker;
  if (!best->submit(task)) task->run();
}

}  // namespace pario::engine
