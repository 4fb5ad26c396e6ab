// Threads as ranks of the member callback: a Transport whose messages lie in mailboxes of this
// process.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/comm/callback.hpp"

namespace pario::comm {

class Mailboxes {
 public:
  explicit Mailboxes(std::size_t ranks) : boxes_(ranks) {}
  void put(int to, Message message) {
    const std::lock_guard lock(mutex_);
    boxes_[static_cast<std::size_t>(to)].push_back(std::move(message));
  }
  std::optional<Message> take(int rank) {
    const std::lock_guard lock(mutex_);
    auto& box = boxes_[static_cast<std::size_t>(rank)];
    if (box.empty()) return std::nullopt;
    Message message = std::move(box.front());
    box.pop_front();
    return message;
  }
  int size() const { return static_cast<int>(boxes_.size()); }

 private:
  std::mutex mutex_;
  std::vector<std::deque<Message>> boxes_;
};

class MailboxTransport : public Transport {
 public:
  MailboxTransport(std::shared_ptr<Mailboxes> boxes, int rank)
      : boxes_(std::move(boxes)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return boxes_->size(); }
  base::Status send(int to, std::span<const std::byte> message) override {
    boxes_->put(to, {rank_, {message.begin(), message.end()}});
    return {};
  }
  base::Result<std::optional<Message>> receive() override { return boxes_->take(rank_); }

 private:
  std::shared_ptr<Mailboxes> boxes_;
  int rank_;
};

/// Runs `body` on as many threads as ranks; rank r is on node `node_of[r]`.
inline void run_with_mailboxes(
    std::span<const int> node_of,
    const std::function<void(std::shared_ptr<Router>, std::shared_ptr<Comm>)>& body) {
  const auto boxes = std::make_shared<Mailboxes>(node_of.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < node_of.size(); ++rank)
    threads.emplace_back([&, rank] {
      const auto router = std::make_shared<Router>(
          std::make_shared<MailboxTransport>(boxes, static_cast<int>(rank)));
      const auto alone = make_callback(router);
      auto made = introduce(router, *alone, static_cast<std::uint64_t>(node_of[rank]));
      ASSERT_TRUE(made.ok()) << made.error().text();
      body(router, *made);
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace pario::comm
