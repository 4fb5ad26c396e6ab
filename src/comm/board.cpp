#include "comm/board.hpp"

#include <algorithm>
#include <cstring>

namespace pario::comm {
namespace {

constexpr std::size_t kHeadBytes = 4096, kSlotBytes = 4096;

}  // namespace

struct Board::Head {
  base::FutexWord arrived, generation;
  std::atomic<std::uint32_t> broken, told;  // broken: 1: `error` is being written, 2: it can be read
  ErrorRecord error;
};

std::size_t Board::bytes(int count) { return kHeadBytes + 2 * kSlotBytes * static_cast<std::size_t>(count); }

Board::Board(std::shared_ptr<SharedMemory> memory, int me, int count) : memory_(std::move(memory)), me_(me), count_(count) {}

Board::Head& Board::head() const { return *reinterpret_cast<Head*>(memory_->data()); }

std::byte* Board::slot(int who) const {
  const std::size_t index = static_cast<std::size_t>(round_ % 2) * static_cast<std::size_t>(count_) + static_cast<std::size_t>(who);
  return memory_->data() + kHeadBytes + index * kSlotBytes;
}

bool Board::fail(const base::Error& error) const {
  Head& shared = head();
  std::uint32_t none = 0;
  if (!shared.broken.compare_exchange_strong(none, 1)) return false;
  shared.error = to_record(error);
  shared.broken.store(2, std::memory_order_release);
  base::futex_wake(shared.generation);
  return true;
}

bool Board::failed() const { return head().broken.load(std::memory_order_acquire) == 2; }

base::Status Board::failure() const { return failed() ? base::Status(from_record(head().error)) : base::Status(); }

bool Board::must_tell() const { return failed() && head().told.exchange(1) == 0; }

base::Status Board::barrier(const Patience& patience) {
  Head& shared = head();
  const std::uint32_t generation = shared.generation.load(std::memory_order_acquire);
  const auto passed = [&] { return shared.generation.load(std::memory_order_acquire) != generation; };
  if (!failed() && shared.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(count_)) {
    shared.arrived.store(0, std::memory_order_relaxed);
    shared.generation.store(generation + 1, std::memory_order_release);
    base::futex_wake(shared.generation);
    return {};
  }
  if (auto status = wait_until(shared.generation, [&] { return passed() || failed(); }, patience); !status) {
    fail(status.error());
    return status;
  }
  return passed() ? base::Status() : failure();
}

// Round r + 2 uses the slots of round r again. Who writes there has passed the barrier of round r + 1, so everybody has come to that, and
// so has read what there was in round r.
base::Status Board::allgather(const void* mine, std::size_t each, std::span<std::byte* const> places, const Patience& patience) {
  const auto* from = static_cast<const std::byte*>(mine);
  for (std::size_t begin = 0; begin == 0 || begin < each; begin += kSlotBytes) {
    const std::size_t size = std::min(kSlotBytes, each - begin);
    if (size != 0) std::memcpy(slot(me_), from + begin, size);
    if (auto status = barrier(patience); !status) return status;
    for (int who = 0; who < count_ && size != 0; ++who) std::memcpy(places[static_cast<std::size_t>(who)] + begin, slot(who), size);
    ++round_;
  }
  return {};
}

base::Status Board::broadcast(void* data, std::size_t size, int root, const Patience& patience) {
  const std::size_t room = kSlotBytes * static_cast<std::size_t>(count_);
  auto* bytes = static_cast<std::byte*>(data);
  for (std::size_t begin = 0; begin == 0 || begin < size; begin += room) {
    const std::size_t part = std::min(room, size - begin);
    if (me_ == root && part != 0) std::memcpy(slot(0), bytes + begin, part);
    if (auto status = barrier(patience); !status) return status;
    if (me_ != root && part != 0) std::memcpy(bytes + begin, slot(0), part);
    ++round_;
  }
  return {};
}

}  // namespace pario::comm
