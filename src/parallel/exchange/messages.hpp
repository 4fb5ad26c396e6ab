// Messages between nodes and their buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/comm/comm.hpp"

namespace pario::exchange {

/// Memory for one message, not zeroed.
struct Buffer {
  std::unique_ptr<std::byte[]> data = {};
  std::size_t capacity = 0, size = 0;
  std::span<std::byte> bytes() const { return {data.get(), size}; }
};

/// Keeps buffers for reuse, because memory touched for the first time is slow. Not thread-safe.
class Buffers {
 public:
  Buffer get(std::size_t size);
  void put(Buffer buffer);

 private:
  std::vector<Buffer> free_;
};

/// A message and its buffer. If it is destroyed in flight, message and buffer are leaked: the other
/// rank is dead, and MPI may still use the memory.
class Message {
 public:
  Message() = default;
  Message(std::unique_ptr<comm::Pending> pending, Buffer buffer)
      : pending_(std::move(pending)), buffer_(std::move(buffer)) {}
  Message(Message&&) = default;
  Message& operator=(Message&&) = default;
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message();

  bool is_posted() const { return posted_ || pending_; }
  bool test();
  Buffer& buffer() { return buffer_; }

 private:
  std::unique_ptr<comm::Pending> pending_;
  Buffer buffer_;
  bool posted_ = false;
};

/// Messages that are being sent.
class SendQueue {
 public:
  explicit SendQueue(Buffers& buffers) : buffers_(buffers) {}
  void put(std::unique_ptr<comm::Pending> pending, Buffer buffer) {
    messages_.emplace_back(std::move(pending), std::move(buffer));
  }
  /// Reuses the buffers of sent messages. True: some were sent.
  bool remove_sent();
  bool empty() const { return messages_.empty(); }
  bool full() const { return messages_.size() >= kMost; }

 private:
  static constexpr std::size_t kMost = 4;
  Buffers& buffers_;
  std::deque<Message> messages_;
};

}  // namespace pario::exchange
