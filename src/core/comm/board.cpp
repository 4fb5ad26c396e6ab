#include "core/comm/board.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace pario::comm {
namespace {

constexpr std::size_t kHeadBytes = 4096, kSlotBytes = 4096;

/// Cores as bits; those behind the last bit do not count.
using Cores = std::array<std::uint64_t, 16>;

/// The cores on which this thread may run.
Cores own_cores() {
  Cores cores = {};
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (std::size_t core = 0; core < std::min<std::size_t>(CPU_SETSIZE, 64 * cores.size()); ++core)
    if (CPU_ISSET(core, &set)) cores[core / 64] |= std::uint64_t{1} << core % 64;
  return cores;
}

}  // namespace

struct Board::Head {
  base::FutexWord arrived, generation;
  std::atomic<std::uint32_t> sleeping;                           // members that wait in a futex
  std::array<std::atomic<std::uint64_t>, Cores().size()> cores;  // of all members
  std::atomic<std::uint32_t> failure;  // 1: `error` is being written, 2: it is complete
  std::atomic<std::uint32_t> forwarded_failure;
  std::atomic<std::uint32_t> reporting;
  std::atomic<std::uint64_t> keep_alive, forwarded;  // times of the latest
  ErrorRecord error;
};

/// The state of one member, which only that member writes.
struct alignas(64) Board::Line {
  static constexpr std::size_t kWords = 5;
  std::atomic<std::uint64_t> calls;
  std::array<std::atomic<std::uint64_t>, kWords> call;  // its name, ended by a zero
};

// Layout: the head, a line for each member, and two slots for each member.
std::size_t Board::bytes(int count) {
  return kHeadBytes + (sizeof(Line) + 2 * kSlotBytes) * static_cast<std::size_t>(count);
}

Board::Board(std::shared_ptr<SharedMemory> memory, int me, int count)
    : memory_(std::move(memory)), me_(me), count_(count) {
  static_assert(sizeof(Head) <= kHeadBytes);
  if (!memory_) return;
  const Cores cores = own_cores();
  for (std::size_t i = 0; i < cores.size(); ++i)
    head().cores[i].fetch_or(cores[i], std::memory_order_relaxed);
}

Board::Head& Board::head() const { return *reinterpret_cast<Head*>(memory_->data()); }

Board::Line& Board::line(int member) const {
  return reinterpret_cast<Line*>(memory_->data() + kHeadBytes)[member];
}

std::byte* Board::slot(int who) const {
  const std::size_t index =
      static_cast<std::size_t>(round_ % 2) * static_cast<std::size_t>(count_) +
      static_cast<std::size_t>(who);
  return memory_->data() + kHeadBytes + sizeof(Line) * static_cast<std::size_t>(count_) +
         index * kSlotBytes;
}

void Board::announce(std::string_view call) const {
  note_call(call);
  std::atomic<std::uint64_t>& calls = line(me_).calls;
  calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void Board::note_call(std::string_view call) const {
  std::array<char, Line::kWords * sizeof(std::uint64_t)> text = {};
  call.copy(text.data(), text.size() - 1);
  const auto words = std::bit_cast<std::array<std::uint64_t, Line::kWords>>(text);
  Line& mine = line(me_);
  for (std::size_t i = 0; i < Line::kWords; ++i)
    mine.call[i].store(words[i], std::memory_order_relaxed);
}

std::uint64_t Board::calls_of(int member) const {
  return line(member).calls.load(std::memory_order_acquire);
}

Board::Presence Board::presence_of(int member) const {
  std::array<std::uint64_t, Line::kWords> words = {};
  const std::uint64_t calls = calls_of(member);
  for (std::size_t i = 0; i < Line::kWords; ++i)
    words[i] = line(member).call[i].load(std::memory_order_relaxed);
  return {calls, std::bit_cast<std::array<char, sizeof words>>(words).data()};
}

void Board::note_keep_alive(std::uint64_t now) const {
  head().keep_alive.store(now, std::memory_order_relaxed);
}

std::uint64_t Board::last_keep_alive() const {
  return head().keep_alive.load(std::memory_order_relaxed);
}

bool Board::claim_forward(std::uint64_t now, std::uint64_t interval_ns) const {
  std::uint64_t last = head().forwarded.load(std::memory_order_relaxed);
  if (last != 0 && now - last < interval_ns) return false;
  return head().forwarded.compare_exchange_strong(last, now, std::memory_order_relaxed);
}

bool Board::claim_report() const { return head().reporting.exchange(1) == 0; }

void Board::release_report() const { head().reporting.store(0); }

bool Board::fail(const base::Error& error) const {
  Head& shared = head();
  std::uint32_t none = 0;
  if (!shared.failure.compare_exchange_strong(none, 1)) return false;
  shared.error = to_record(error);
  shared.failure.store(2, std::memory_order_release);
  base::futex_wake(shared.generation);
  return true;
}

bool Board::has_failed() const { return head().failure.load(std::memory_order_acquire) == 2; }

base::Status Board::failure() const {
  return has_failed() ? base::Status(from_record(head().error)) : base::Status();
}

bool Board::claim_error_forward() const {
  return has_failed() && head().forwarded_failure.exchange(1) == 0;
}

/// True if every member can run at the same time. Before the first barrier some are not counted.
bool Board::has_core_for_each() const {
  int cores = 0;
  for (const auto& word : head().cores)
    cores += std::popcount(word.load(std::memory_order_relaxed));
  return cores >= count_;
}

/// Ends the barrier of all members. Without sleeping members it makes no system call: a member
/// first counts itself as sleeping and then looks at the generation, the last one does the reverse.
void Board::pass_all() const {
  Head& shared = head();
  shared.arrived.store(0, std::memory_order_relaxed);
  shared.generation.fetch_add(1);
  if (shared.sleeping.load() != 0) base::futex_wake(shared.generation);
}

/// True if the wait ended during its spin.
bool Board::spin(const std::function<bool()>& done) {
  const std::uint64_t ns = has_core_for_each() ? spin_time_.next_ns() : 0;
  if (ns == 0) return false;
  const bool ended = spin_until(done, ns);
  spin_time_.add_outcome(ended);
  return ended;
}

base::Status Board::sleep_until(const std::function<bool()>& done, const Patience& patience) const {
  Head& shared = head();
  shared.sleeping.fetch_add(1);
  base::Status status = wait_until(shared.generation, done, patience);
  shared.sleeping.fetch_sub(1);
  return status;
}

base::Status Board::barrier(const Patience& patience) {
  Head& shared = head();
  const std::uint32_t generation = shared.generation.load(std::memory_order_acquire);
  const auto passed = [&] {
    return shared.generation.load(std::memory_order_acquire) != generation;
  };
  const auto ended = [&] { return passed() || has_failed(); };
  if (!has_failed() && shared.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 ==
                           static_cast<std::uint32_t>(count_)) {
    pass_all();
    return {};
  }
  if (!spin(ended)) {
    if (base::Status status = sleep_until(ended, patience); !status) {
      fail(status.error());
      return status;
    }
  }
  return passed() ? base::Status() : failure();
}

// Round r + 2 reuses the slots of round r. Its writer has passed the barrier of round r + 1, to
// which all members come after they have read the slots of round r.
base::Status Board::allgather(const void* mine, std::size_t each,
                              std::span<std::byte* const> places, const Patience& patience) {
  const auto* from = static_cast<const std::byte*>(mine);
  for (std::size_t begin = 0; begin == 0 || begin < each; begin += kSlotBytes) {
    const std::size_t size = std::min(kSlotBytes, each - begin);
    if (size != 0) std::memcpy(slot(me_), from + begin, size);
    if (auto status = barrier(patience); !status) return status;
    for (int who = 0; who < count_ && size != 0; ++who)
      std::memcpy(places[static_cast<std::size_t>(who)] + begin, slot(who), size);
    ++round_;
  }
  return {};
}

base::Status Board::broadcast(void* data, std::size_t size, int root, const Patience& patience) {
  const std::size_t capacity = kSlotBytes * static_cast<std::size_t>(count_);
  auto* bytes = static_cast<std::byte*>(data);
  for (std::size_t begin = 0; begin == 0 || begin < size; begin += capacity) {
    const std::size_t part = std::min(capacity, size - begin);
    if (me_ == root && part != 0) std::memcpy(slot(0), bytes + begin, part);
    if (auto status = barrier(patience); !status) return status;
    if (me_ != root && part != 0) std::memcpy(bytes + begin, slot(0), part);
    ++round_;
  }
  return {};
}

}  // namespace pario::comm
