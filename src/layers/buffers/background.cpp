#include "layers/buffers/background.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>

#include "core/base/base.hpp"
#include "core/base/threads.hpp"
#include "layers/buffers/blocked_signals.hpp"

namespace pario::buffers::background {
namespace {

constexpr std::uint64_t kPeriodNs = 500'000'000;  // of the periodic tasks
constexpr std::uint64_t kIdleNs = 3'600'000'000'000;

struct Queue {
  std::mutex mutex;
  std::condition_variable filled;
  Buffer* first = nullptr;
  Buffer* last = nullptr;
  std::uint64_t threads = 0;
};

struct Queues {
  Queue writes, reads;
};

/// The queues. Never destroyed: the threads outlive static destructors.
Queues& queues() {
  alignas(Queues) static std::byte memory[sizeof(Queues)];
  static Queues* const made = new (memory) Queues;
  return *made;
}

constinit std::atomic<void (*)(Buffer&)> complete{nullptr};
constinit std::atomic<void (*)()> check_files{nullptr};
constinit std::atomic<void (*)()> periodic_task{nullptr};

/// Removes the first buffer of a queue; null if the queue stays empty for `patience_ns`.
Buffer* pop(Queue& queue, std::uint64_t patience_ns) {
  std::unique_lock lock(queue.mutex);
  if (queue.first == nullptr) queue.filled.wait_for(lock, std::chrono::nanoseconds(patience_ns));
  Buffer* buffer = queue.first;
  if (buffer != nullptr) queue.first = buffer->next;
  if (queue.first == nullptr) queue.last = nullptr;
  return buffer;
}

void push(Queue& queue, Buffer& buffer) {
  {
    const HandlerSafeLock lock(queue.mutex);
    buffer.next = nullptr;
    (queue.last == nullptr ? queue.first : queue.last->next) = &buffer;
    queue.last = &buffer;
  }
  queue.filled.notify_one();
}

void call(const std::atomic<void (*)()>& task) {
  if (auto* function = task.load(std::memory_order_acquire)) function();
}

void complete_next(Queue& queue, std::uint64_t patience_ns) {
  if (Buffer* buffer = pop(queue, patience_ns)) complete.load(std::memory_order_acquire)(*buffer);
}

void* run_reader(void*) {
  for (;;) complete_next(queues().reads, kIdleNs);
  return nullptr;
}

void* run_writer(void*) {
  std::uint64_t last_check = base::monotonic_ns();
  for (;;) {
    complete_next(queues().writes, kPeriodNs);
    const std::uint64_t now = base::monotonic_ns();
    if (now - last_check < kPeriodNs) continue;
    last_check = now;
    call(check_files);
    call(periodic_task);
  }
  return nullptr;
}

/// Starts threads up to the wanted number; false if no thread runs.
bool start_threads(Queue& queue, void* (*function)(void*), std::uint64_t wanted) {
  const HandlerSafeLock lock(queue.mutex);
  while (queue.threads < wanted && base::start_detached_thread(function, nullptr)) ++queue.threads;
  return queue.threads != 0;
}

}  // namespace

void set_work(const Work& work) {
  complete.store(work.complete, std::memory_order_release);
  check_files.store(work.check_files, std::memory_order_release);
}

bool start() { return start_threads(queues().writes, run_writer, 1); }

bool enqueue_write(Buffer& buffer) {
  if (!start()) return false;
  push(queues().writes, buffer);
  return true;
}

bool enqueue_read(Buffer& buffer, std::uint64_t readers) {
  if (readers <= 1) return enqueue_write(buffer);
  if (!start_threads(queues().reads, run_reader, readers)) return false;
  push(queues().reads, buffer);
  return true;
}

void set_periodic_task(void (*task)()) {
  periodic_task.store(task, std::memory_order_release);
  start();
}

void reset_in_child() { new (&queues()) Queues; }

}  // namespace pario::buffers::background
