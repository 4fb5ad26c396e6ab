#include "parallel/exchange/messages.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace pario::exchange {
namespace {

constexpr std::size_t kMostFree = 8;

struct Abandoned {
  std::unique_ptr<comm::Pending> pending;
  std::unique_ptr<std::byte[]> data;
};

void abandon(Abandoned lost) {
  static std::mutex mutex;
  static auto* all = new std::vector<Abandoned>;  // never destroyed
  const std::scoped_lock lock(mutex);
  all->push_back(std::move(lost));
}

}  // namespace

Buffer Buffers::get(std::size_t size) {
  const auto fits = [&](const Buffer& buffer) { return buffer.capacity >= size; };
  if (const auto found = std::find_if(free_.begin(), free_.end(), fits); found != free_.end()) {
    Buffer buffer = std::move(*found);
    free_.erase(found);
    buffer.size = size;
    return buffer;
  }
  if (!free_.empty()) free_.pop_back();  // too small for current messages
  return {std::unique_ptr<std::byte[]>(new std::byte[size]), size, size};
}

void Buffers::put(Buffer buffer) {
  if (free_.size() < kMostFree) free_.push_back(std::move(buffer));
}

Message::~Message() {
  if (pending_ && !pending_->test()) abandon({std::move(pending_), std::move(buffer_.data)});
}

bool Message::test() {
  if (pending_ && pending_->test() && pending_->error() == 0) {  // the Comm reports failed ones
    pending_.reset();
    posted_ = true;
  }
  return posted_ && !pending_;
}

bool SendQueue::remove_sent() {
  bool found = false;
  for (auto message = messages_.begin(); message != messages_.end();) {
    if (!message->test()) {
      ++message;
      continue;
    }
    buffers_.put(std::move(message->buffer()));
    message = messages_.erase(message);
    found = true;
  }
  return found;
}

}  // namespace pario::exchange
