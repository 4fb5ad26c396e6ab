#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/comm/callback.hpp"

namespace pario::comm {
namespace {

constexpr std::uint32_t kChannels = ~std::uint32_t{0};  // the number of all channels
constexpr std::uint64_t kUnderWay =
    1'000'000'000;  // time for a message that a dead rank or its peer has sent

struct Header {
  Router::Address address;
};

/// The time at which a wait ends.
std::uint64_t end_of(const Router::Wait& wait, const Comm& comm) {
  const std::uint64_t begin = std::max(wait.begin_ns, comm.last_keep_alive());
  return begin + std::min(wait.patience_ns, ~std::uint64_t{0} - begin);
}

/// True if neither a message nor a keep-alive has arrived in time.
bool has_timed_out(const Router::Wait& wait, Comm& comm, std::uint64_t now) {
  if (now < end_of(wait, comm)) return false;
  if (wait.patience_ns != 0) static_cast<void>(comm.check(kSilence));  // receives keep-alives
  return now >= end_of(wait, comm);
}

base::Status check_wait(const Router::Wait& wait, Comm& comm) {
  base::Status status = wait.look ? wait.look() : base::Status();
  return status ? comm.check(kSilence) : status;
}

/// The first death of a rank during a wait. A message sent before may still arrive.
class Death {
 public:
  void record(const base::Error& error) {
    if (deadline_ != kNever) return;
    error_ = error;
    deadline_ = base::monotonic_ns() + kUnderWay;
  }
  /// True if a message that has not arrived counts as lost.
  bool ends_wait(std::uint64_t now) const { return now >= deadline_; }
  const base::Error& error() const { return error_; }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  base::Error error_;
  std::uint64_t deadline_ = kNever;
};

}  // namespace

void Transport::pause(std::uint64_t waited_ns, std::uint64_t) { sleep_for_share(waited_ns); }

base::Status Router::send(int to, Address address, std::span<const std::byte> data) {
  std::vector<std::byte> message(sizeof(Header) + data.size());
  const Header header{address};
  std::memcpy(message.data(), &header, sizeof header);
  std::ranges::copy(data, message.begin() + sizeof header);
  if (to != rank()) return transport_->send(to, message);
  deliver({to, std::move(message)});
  return {};
}

void Router::deliver(Message&& message) {
  Header header;
  if (message.data.size() < sizeof header) return;
  std::memcpy(&header, message.data.data(), sizeof header);
  const std::span<const std::byte> data = std::span(message.data).subspan(sizeof header);
  const std::lock_guard lock(mutex_);
  Queue& queue = queues_[{header.address, message.from}];
  if (queue.posts.empty()) {
    queue.messages.emplace_back(data.begin(), data.end());
    return;
  }
  Post& post = *queue.posts.front();
  std::copy_n(data.begin(), std::min(data.size(), post.data.size()), post.data.begin());
  post.done = true;
  queue.posts.pop_front();
}

void Router::post(Address address, int from, const std::shared_ptr<Post>& post) {
  const std::lock_guard lock(mutex_);
  Queue& queue = queues_[{address, from}];
  if (queue.messages.empty()) return queue.posts.push_back(post);
  const std::vector<std::byte>& data = queue.messages.front();
  std::copy_n(data.begin(), std::min(data.size(), post->data.size()), post->data.begin());
  post->done = true;
  queue.messages.pop_front();
}

void Router::withdraw(Address address, int from, const std::shared_ptr<Post>& post) {
  const std::lock_guard lock(mutex_);
  std::erase(queues_[{address, from}].posts, post);
}

bool Router::is_done(const Post& post) {
  const std::lock_guard lock(mutex_);
  return post.done;
}

std::optional<Message> Router::remove_message(Address address, int from) {
  const std::lock_guard lock(mutex_);
  for (auto at = queues_.lower_bound({address, from});
       at != queues_.end() && at->first.first == address; ++at) {
    if (from >= 0 && at->first.second != from) break;
    auto& messages = at->second.messages;
    if (messages.empty()) continue;
    Message message{at->first.second, std::move(messages.front())};
    messages.pop_front();
    return message;
  }
  return std::nullopt;
}

base::Status Router::poll() {
  const std::unique_lock lock(receiving_, std::try_to_lock);
  while (lock) {
    auto received = transport_->receive();
    if (!received.ok()) return received.error();
    if (!*received) break;
    deliver(std::move(**received));
  }
  return {};
}

void Router::pause(std::uint64_t waited_ns, std::uint64_t longest_ns) {
  const std::unique_lock lock(receiving_, std::try_to_lock);
  if (lock)
    transport_->pause(waited_ns, longest_ns);
  else
    sleep_for_share(waited_ns);
}

base::Status Router::send_message(int to, int channel, std::span<const std::byte> data) {
  return send(to, {kChannels, channel}, data);
}

base::Result<std::optional<Message>> Router::receive_message(Comm& comm, const Wait& wait) {
  const Patience patience{.interval_ns = Patience::interval_within(wait.patience_ns),
                          .look = [&](std::uint64_t) { return check_wait(wait, comm); },
                          .progress = [&] { comm.progress(); }};
  PatienceTimer timer(patience);
  Death death;
  while (true) {
    if (base::Status status = poll(); !status) return status.error();
    if (auto message = remove_message({kChannels, wait.channel}, wait.from)) return message;
    const std::uint64_t now = base::monotonic_ns();
    if (death.ends_wait(now)) return death.error();
    if (has_timed_out(wait, comm, now)) return std::optional<Message>();
    pause(timer.waited_ns(), std::min(timer.nap_ns(), end_of(wait, comm) - now));
    base::Status status = timer.call_due();
    if (status) continue;
    if (status.error().number != ESRCH) return status.error();
    death.record(status.error());
  }
}

}  // namespace pario::comm
