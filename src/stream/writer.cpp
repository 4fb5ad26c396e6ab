#include "stream/writer.hpp"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <new>

#include "stream/file.hpp"
#include "stream/registry.hpp"

namespace pario::stream::writer {
namespace {

constexpr std::uint64_t kLookNs = 500'000'000;  // how often waiting bytes are looked at
constexpr std::uint64_t kLongNs = 3'600'000'000'000;

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

/// Never destroyed: the threads outlive static destructors.
Queues& queues() {
  alignas(Queues) static std::byte memory[sizeof(Queues)];
  static Queues* const made = new (memory) Queues;
  return *made;
}

constinit std::atomic<void (*)()> looking{nullptr};

/// Null: nothing has come for that long.
Buffer* pop(Queue& queue, std::uint64_t patience_ns) {
  std::unique_lock lock(queue.mutex);
  if (queue.first == nullptr) queue.filled.wait_for(lock, std::chrono::nanoseconds(patience_ns));
  Buffer* buffer = queue.first;
  if (buffer != nullptr) queue.first = buffer->next;
  if (queue.first == nullptr) queue.last = nullptr;
  return buffer;
}

void* read(void*) {
  for (;;)
    if (Buffer* buffer = pop(queues().reads, kLongNs)) buffer->file->finish(*buffer);
  return nullptr;
}

void* write(void*) {
  std::uint64_t looked = base::monotonic_ns();
  for (;;) {
    if (Buffer* buffer = pop(queues().writes, kLookNs)) buffer->file->finish(*buffer);
    const std::uint64_t now = base::monotonic_ns();
    if (now - looked < kLookNs) continue;
    looked = now;
    registry::for_each_file([&](File& file) {
      file.hand_over_older_than(now);
      file.publish();
    });
    if (auto* look = looking.load(std::memory_order_acquire)) look();
  }
  return nullptr;
}

bool create_thread(void* (*run)(void*)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool created = pthread_create(&thread, nullptr, run, nullptr) == 0;
  if (created) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return created;
}

/// As many as are wanted; false: there is none.
bool start(Queue& queue, void* (*run)(void*), std::uint64_t wanted) {
  const std::scoped_lock lock(queue.mutex);
  while (queue.threads < wanted && create_thread(run)) ++queue.threads;
  return queue.threads != 0;
}

void put(Queue& queue, Buffer& buffer) {
  {
    const std::scoped_lock lock(queue.mutex);
    buffer.next = nullptr;
    (queue.last == nullptr ? queue.first : queue.last->next) = &buffer;
    queue.last = &buffer;
  }
  queue.filled.notify_one();
}

}  // namespace

bool start() { return start(queues().writes, write, 1); }

void watch(void (*look)()) {
  looking.store(look, std::memory_order_release);
  start();
}

bool push(Buffer& buffer) {
  if (!start()) return false;
  put(queues().writes, buffer);
  return true;
}

bool push_read(Buffer& buffer, std::uint64_t readers) {
  if (readers <= 1) return push(buffer);
  if (!start(queues().reads, read, readers)) return false;
  put(queues().reads, buffer);
  return true;
}

void forget() { new (&queues()) Queues; }

}  // namespace pario::stream::writer
