// The time that targets need, computed by a clock that receives the time as an argument. Pure: no
// function waits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace pario::lab {

/// Nanoseconds of the monotonic clock, and durations in nanoseconds.
using Moment = std::uint64_t;
using Duration = std::uint64_t;
/// A user of a file: the inode of a network name space, or a process; 0: the kernel on its own
/// account.
using Client = std::uint64_t;

/// Serves one request after the other at a rate in bytes per second; 0: no limit.
class Queue {
 public:
  explicit Queue(double bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  /// Adds a request that arrives at `now`; it occupies the queue for bytes / rate + `overhead`.
  /// Returns its end.
  Moment book(Moment now, std::uint64_t bytes, Duration overhead) {
    const Duration moving =
        bytes_per_second_ > 0
            ? static_cast<Duration>(1e9 * static_cast<double>(bytes) / bytes_per_second_)
            : 0;
    busy_ += moving + overhead;
    return free_at_ = std::max(free_at_, now) + moving + overhead;
  }
  Duration busy() const { return busy_; }

 private:
  double bytes_per_second_;
  Moment free_at_ = 0;
  Duration busy_ = 0;
};

/// The writes that a client has in flight to one target, at most `size`; another write waits for
/// the oldest. With size 0 every write is waited for.
class Window {
 public:
  explicit Window(std::size_t size) : done_(size) {}

  /// Adds a write that ends at `done`. Returns the time at which its writer continues.
  Moment admit(Moment done) {
    if (done_.empty()) return done;
    std::swap(done, done_[next_++ % done_.size()]);
    return done;
  }

 private:
  std::vector<Moment> done_;
  std::size_t next_ = 0;
};

/// The lock of a stripe object: free, held by one writing client, or shared by readers.
class ObjectLock {
 public:
  /// Acquires the lock. True: another client had to give it up first.
  bool acquire(Client client, bool to_write) {
    if (state_ == State::held && holder_ == client) return false;
    const bool taken = state_ == State::held ||
                       (state_ == State::shared && to_write && (holder_ != client || others_));
    if (to_write) {
      state_ = State::held, holder_ = client, others_ = false;
    } else {
      others_ = state_ == State::shared && (others_ || holder_ != client);
      state_ = State::shared, holder_ = client;
    }
    return taken;
  }

 private:
  enum class State : std::uint8_t { free, held, shared };
  State state_ = State::free;
  bool others_ = false;  // clients other than the holder read, too
  Client holder_ = 0;
};

/// Finds the rest of a divided access. The kernel divides a large access into requests of 256 pages
/// and so often leaves a rest of less than a page, which counts as part of the request before.
class Continuation {
 public:
  /// True if a request continues a long one of the same client.
  bool continues(Client client, std::uint64_t begin, std::uint64_t bytes) {
    constexpr std::uint64_t kPage = 4096, kLong = 15 * kPage;
    constexpr std::size_t kMost = 256;
    const bool rest = bytes < kPage && ends_.erase({client, begin}) > 0;
    if (ends_.size() >= kMost) ends_.clear();
    if (bytes >= kLong) ends_.emplace(client, begin + bytes);
    return rest;
  }

 private:
  std::set<std::pair<Client, std::uint64_t>> ends_;  // of long requests
};

}  // namespace pario::lab
