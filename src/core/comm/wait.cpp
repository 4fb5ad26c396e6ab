// Waiting: on futexes inside a node, by testing with pauses between nodes.
#include <algorithm>

#include "core/base/sleep.hpp"
#include "core/comm/comm.hpp"

namespace pario::comm {
namespace {

constexpr int kSpins = 20;  // about a microsecond: the other rank may be running right now
constexpr std::uint64_t kShortestPause = 1'000, kLongestPause = 1'000'000;
constexpr std::uint64_t kShortestInterval = 10'000'000;
constexpr std::uint64_t kFirstProgress = 50'000,
                        kLastProgress = 1'000'000;  // pauses between calls of Patience::progress

bool all_done(std::span<const std::unique_ptr<Pending>> messages) {
  bool done = true;
  for (const auto& message : messages)
    done = (!message || message->test()) && done;  // all are tested: each may need the progress
  return done;
}

base::Status outcome(std::span<const std::unique_ptr<Pending>> messages) {
  for (const auto& message : messages) {
    if (message && message->error() != 0)
      return base::Error{.number = message->error(), .operation = "message between ranks"};
  }
  return {};
}

/// True if the wait ends at once.
bool spin_briefly(const std::function<bool()>& done) {
  for (int i = 0; i < kSpins; ++i) {
    if (done()) return true;
    base::pause_cpu();
  }
  return false;
}

void pause_any(std::span<const std::unique_ptr<Pending>> messages, const PatienceTimer& timer) {
  for (const auto& message : messages)
    if (message && !message->test())
      return message->pause(timer.waited_ns(), std::max(timer.nap_ns(), kShortestPause));
}

}  // namespace

// Sleeps in proportion to the time waited so far: adds little delay and costs little processor
// time.
void Pending::pause(std::uint64_t waited_ns, std::uint64_t) { sleep_for_share(waited_ns); }

void sleep_for_share(std::uint64_t waited_ns) {
  base::sleep_ns(std::clamp(waited_ns / 16, kShortestPause, kLongestPause));
}

std::uint64_t Patience::interval_within(std::uint64_t limit_ns) {
  return std::clamp(limit_ns / 4, kShortestInterval, kUsualInterval);
}

PatienceTimer::PatienceTimer(const Patience& patience)
    : patience_(patience),
      begin_(base::monotonic_ns()),
      now_(begin_),
      look_due_(begin_ + patience.interval_ns),
      progress_due_(patience.progress ? begin_ + kFirstProgress : ~std::uint64_t{0}) {}

std::uint64_t PatienceTimer::nap_ns() const {
  const std::uint64_t due = std::min(look_due_, progress_due_);
  return due > now_ ? due - now_ : 0;
}

base::Status PatienceTimer::call_due() {
  now_ = base::monotonic_ns();
  if (now_ >= progress_due_) {
    patience_.progress();
    progress_due_ = now_ + std::clamp(waited_ns() / 4, kFirstProgress, kLastProgress);
  }
  if (now_ < look_due_) return {};
  look_due_ = now_ + patience_.interval_ns;
  return patience_.look ? patience_.look(waited_ns()) : base::Status();
}

base::Status wait_until(const base::FutexWord& word, const std::function<bool()>& done,
                        const Patience& patience) {
  if (spin_briefly(done)) return {};
  PatienceTimer timer(patience);
  while (true) {
    const std::uint32_t seen = word.load(std::memory_order_acquire);
    if (done()) return {};
    base::futex_wait(word, seen, std::max(timer.nap_ns(), kShortestPause));
    if (done()) return {};
    if (auto status = timer.call_due(); !status) return status;
  }
}

base::Status poll_until(const std::function<bool()>& done, const Patience& patience) {
  if (spin_briefly(done)) return {};
  PatienceTimer timer(patience);
  while (!done()) {
    sleep_for_share(timer.waited_ns());
    if (base::Status status = timer.call_due(); !status) return status;
  }
  return {};
}

base::Status wait_all(std::span<const std::unique_ptr<Pending>> messages,
                      const Patience& patience) {
  if (all_done(messages)) return outcome(messages);
  PatienceTimer timer(patience);
  while (!all_done(messages)) {
    pause_any(messages, timer);
    if (auto status = timer.call_due(); !status) return status;
  }
  return outcome(messages);
}

}  // namespace pario::comm
