// Messages under way, with the buffers they need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "comm/comm.hpp"

namespace pario::exchange {

/// Memory for one message, not zeroed.
struct Buffer {
  std::unique_ptr<std::byte[]> data = {};
  std::size_t capacity = 0, size = 0;
  std::span<std::byte> bytes() const { return {data.get(), size}; }
};

/// Buffers are used again: memory touched for the first time is slow.
class Buffers {
 public:
  Buffer take(std::size_t size);
  void give(Buffer buffer);

 private:
  std::vector<Buffer> free_;
};

/// A message and its buffer. Left as it is when destroyed under way: who should have taken part is dead, so that the buffer must stay.
class Letter {
 public:
  Letter() = default;
  Letter(std::unique_ptr<comm::Pending> pending, Buffer buffer) : pending_(std::move(pending)), buffer_(std::move(buffer)) {}
  Letter(Letter&&) = default;
  Letter& operator=(Letter&&) = default;
  Letter(const Letter&) = delete;
  Letter& operator=(const Letter&) = delete;
  ~Letter();

  bool posted() const { return posted_ || pending_; }
  bool test();
  Buffer& buffer() { return buffer_; }

 private:
  std::unique_ptr<comm::Pending> pending_;
  Buffer buffer_;
  bool posted_ = false;
};

/// Messages that are leaving.
class Outbox {
 public:
  explicit Outbox(Buffers& buffers) : buffers_(buffers) {}
  void put(std::unique_ptr<comm::Pending> pending, Buffer buffer) { letters_.emplace_back(std::move(pending), std::move(buffer)); }
  /// Forgets those that have left; true: there were such.
  bool sweep();
  bool empty() const { return letters_.empty(); }
  bool full() const { return letters_.size() >= kMost; }

 private:
  static constexpr std::size_t kMost = 4;
  Buffers& buffers_;
  std::deque<Letter> letters_;
};

}  // namespace pario::exchange
