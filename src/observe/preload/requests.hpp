// Asynchronous requests of POSIX AIO, libaio and io_uring: those in flight, and their counting.
//
// A request is counted on its file when its completion is seen, with its offset, bytes, result and
// latency, but without time, because it ran beside the program. The time of the program is that of
// the calls that submit and await requests (op `async`); it is divided among the files of the
// requests that a call submitted or found complete.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "observe/preload/calls.hpp"

namespace pario::preload {

/// A submitted request.
struct Request {
  std::uint64_t data = 0;  ///< the program's name for it: the address of an iocb, or user_data
  trace::Record* record = nullptr;
  std::uint64_t offset = trace::kUnknownOffset;
  std::uint64_t asked = 0;
  std::uint64_t start = 0;  ///< ticks; 0: the entry of a table is empty
  Symbol symbol = Symbol::count;
  std::uint32_t open_flags = 0;
  std::uint32_t place = 0;     ///< of an open: the number of a registered file plus one, or 0
  const void* data_written{};  ///< of writes of libaio: the bytes, readable until completion
};

/// The requests in flight of one context or ring: a hash table by `data`, in which several requests
/// may have the same. Its owner locks it.
class RequestTable {
 public:
  /// Empties the table, and gives it memory for `most` requests or more, bounded.
  void begin(std::uint32_t most);
  /// False: the table is full.
  bool add(const Request& request);
  /// Removes a request; false: none has this name.
  bool take(std::uint64_t data, Request& out);
  bool is_empty() const { return used_ == 0; }

 private:
  std::uint32_t home(std::uint64_t data) const;
  void close_gap(std::uint32_t gap);

  Request* entries_ = nullptr;
  std::uint32_t size_ = 0, used_ = 0;
};

/// Adds a request that is about to be submitted. One with the same name that is still in the table
/// was never collected, or awaited without a call: it counts as complete.
void begin_request(RequestTable& table, const Request& request);

/// The distinct files of the requests of one call.
class RequestFiles {
 public:
  void add(trace::Record* record);
  bool is_empty() const { return used_ == 0; }
  /// Counts a call on these files; on none: as a call without a file.
  void count(Symbol symbol, Span span, bool failed) const;

 private:
  static constexpr std::size_t kMost = 8;  // the requests of further files are counted on the last
  struct Share {
    trace::Record* record;
    std::uint64_t requests;
  };
  std::array<Share, kMost> shares_{};
  std::size_t used_ = 0;
  std::uint64_t requests_ = 0;
};

/// Counts the completion of a request with `result`, a number of bytes or -errno, at the moment
/// `now`.
void count_completion(const Request& request, std::int64_t result, std::uint64_t now);

/// A fixed pool of objects with a 64-bit key (0: unused) and a lock.
template <class Object, std::size_t Size>
class Pool {
 public:
  Object* find(std::uint64_t key) {
    const std::uint32_t end = used_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < end; ++i)
      if (std::atomic_ref(objects_[i].key).load(std::memory_order_acquire) == key)
        return &objects_[i];
    return nullptr;
  }
  /// Returns an unused object that now has the key; null: all are in use.
  Object* claim(std::uint64_t key) {
    const base::SpinLock lock(lock_);
    const std::uint32_t end = used_.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < Size; ++i) {
      if (std::atomic_ref(objects_[i].key).load(std::memory_order_relaxed) != 0) continue;
      std::atomic_ref(objects_[i].key).store(key, std::memory_order_release);
      if (i >= end) used_.store(i + 1, std::memory_order_release);
      return &objects_[i];
    }
    return nullptr;
  }
  bool is_empty() const { return used_.load(std::memory_order_relaxed) == 0; }
  template <class Action>
  void for_each(Action action) {
    const std::uint32_t end = used_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < end; ++i)
      if (std::atomic_ref(objects_[i].key).load(std::memory_order_acquire) != 0)
        action(objects_[i]);
  }
  static void release(Object& object) {
    std::atomic_ref(object.key).store(0, std::memory_order_release);
  }
  /// In the child of a fork, where no lock has an owner.
  void forget_all() {
    lock_ = 0;
    for_each([](Object& object) { object.lock = 0, release(object); });
  }

 private:
  std::uint64_t lock_ = 0;
  std::atomic<std::uint32_t> used_{0};
  Object objects_[Size]{};
};

namespace libaio {
/// In the child of a fork: contexts are not inherited.
void forget_all();
}  // namespace libaio
namespace posix_aio {
/// In the child of a fork: requests are not inherited.
void forget_all();
}  // namespace posix_aio

}  // namespace pario::preload
