#include "exchange/mail.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace pario::exchange {
namespace {

constexpr std::size_t kMostFree = 8;

struct Lost {
  std::unique_ptr<comm::Pending> pending;
  std::unique_ptr<std::byte[]> data;
};

void abandon(Lost lost) {
  static std::mutex mutex;
  static auto* all = new std::vector<Lost>;  // never destroyed
  const std::scoped_lock lock(mutex);
  all->push_back(std::move(lost));
}

}  // namespace

Buffer Buffers::take(std::size_t size) {
  const auto fits = [&](const Buffer& buffer) { return buffer.capacity >= size; };
  if (const auto found = std::find_if(free_.begin(), free_.end(), fits); found != free_.end()) {
    Buffer buffer = std::move(*found);
    free_.erase(found);
    buffer.size = size;
    return buffer;
  }
  if (!free_.empty()) free_.pop_back();  // too small for what is asked for now
  return {std::unique_ptr<std::byte[]>(new std::byte[size]), size, size};
}

void Buffers::give(Buffer buffer) {
  if (free_.size() < kMostFree) free_.push_back(std::move(buffer));
}

Letter::~Letter() {
  if (pending_ && !pending_->test()) abandon({std::move(pending_), std::move(buffer_.data)});
}

bool Letter::test() {
  if (pending_ && pending_->test() && pending_->error() == 0) {  // of a failed one the Comm tells
    pending_.reset();
    posted_ = true;
  }
  return posted_ && !pending_;
}

bool Outbox::sweep() {
  bool found = false;
  for (auto letter = letters_.begin(); letter != letters_.end();) {
    if (!letter->test()) {
      ++letter;
      continue;
    }
    buffers_.give(std::move(letter->buffer()));
    letter = letters_.erase(letter);
    found = true;
  }
  return found;
}

}  // namespace pario::exchange
