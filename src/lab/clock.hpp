// How long targets take, as a clock that is told the time: nothing here waits. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace pario::lab {

/// Nanoseconds of the monotonic clock, and how many of them.
using Moment = std::uint64_t;
using Duration = std::uint64_t;
/// Who uses a file: the inode of a network name space, or a process; 0: the kernel on its own account.
using Client = std::uint64_t;

/// One request after the other, at so many bytes per second; 0: no limit.
class Queue {
 public:
  explicit Queue(double bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  /// What comes `now` occupies the queue for bytes / rate and what it costs beside; the moment when it is done.
  Moment book(Moment now, std::uint64_t bytes, Duration beside) {
    const Duration moving = bytes_per_second_ > 0 ? static_cast<Duration>(1e9 * static_cast<double>(bytes) / bytes_per_second_) : 0;
    busy_ += moving + beside;
    return free_at_ = std::max(free_at_, now) + moving + beside;
  }
  Duration busy() const { return busy_; }

 private:
  double bytes_per_second_;
  Moment free_at_ = 0;
  Duration busy_ = 0;
};

/// The writes that a client has under way to one target: at most so many, and who wants one more waits for the oldest. With room for none,
/// each is waited for.
class Window {
 public:
  explicit Window(std::size_t room) : done_(room) {}

  /// Takes in a write that is done at a moment; the moment when its writer may go on.
  Moment admit(Moment done) {
    if (done_.empty()) return done;
    std::swap(done, done_[next_++ % done_.size()]);
    return done;
  }

 private:
  std::vector<Moment> done_;
  std::size_t next_ = 0;
};

/// Who holds the lock of a stripe object: nobody, one client that writes, or all who read.
class ObjectLock {
 public:
  /// Whether it has to be taken from somebody else first.
  bool take(Client client, bool to_write) {
    if (state_ == State::held && holder_ == client) return false;
    const bool taken = state_ == State::held || (state_ == State::shared && to_write && (holder_ != client || others_));
    if (to_write) {
      state_ = State::held, holder_ = client, others_ = false;
    } else {
      others_ = state_ == State::shared && (others_ || holder_ != client);
      state_ = State::shared, holder_ = client;
    }
    return taken;
  }

 private:
  enum class State : std::uint8_t { nobody, held, shared };
  State state_ = State::nobody;
  bool others_ = false;  // more than the holder read
  Client holder_ = 0;
};

/// The kernel cuts what a program asks for at once into requests of 256 pages, and so often leaves a rest of less than a page. It belongs
/// to the request before, as if nothing had been cut.
class Continuation {
 public:
  /// Whether a request goes on where a long one of the same client ended.
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
