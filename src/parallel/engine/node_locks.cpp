#include "parallel/engine/node_locks.hpp"

#include <bit>
#include <cerrno>

#include "parallel/engine/robust_mutex.hpp"

namespace pario::engine {
namespace {

constexpr std::uint64_t kAllSlots = ~std::uint64_t{0};

}  // namespace

void NodeLocks::initialise(std::byte* memory) {
  initialise_mutexes(std::span(reinterpret_cast<Slot*>(memory), kSlots));
}

NodeLocks::NodeLocks(std::byte* memory) : slots_(reinterpret_cast<Slot*>(memory), kSlots) {}

/// Returns a bit for each slot of a page of the range: page modulo the number of slots. Ranges in
/// the same page exclude each other, as in the kernel.
std::uint64_t NodeLocks::find_slots(base::Extent range) {
  if (range.empty()) return 0;
  const std::uint64_t first = range.begin / base::kPage, last = (range.end - 1) / base::kPage;
  if (last - first >= kSlots - 1) return kAllSlots;
  const std::uint64_t pages = (std::uint64_t{1} << (last - first + 1)) - 1;
  return std::rotl(pages, static_cast<int>(first % kSlots));
}

/// Locks in the order of the slots, so that two ranks never wait for each other.
NodeLocks::Hold::Hold(const NodeLocks& locks, base::Extent range)
    : locks_(locks), slots_(find_slots(range)) {
  for (std::uint64_t rest = slots_; rest != 0; rest &= rest - 1) {
    pthread_mutex_t& mutex = locks_.slots_[static_cast<std::size_t>(std::countr_zero(rest))].mutex;
    if (::pthread_mutex_lock(&mutex) == EOWNERDEAD) ::pthread_mutex_consistent(&mutex);
  }
}

NodeLocks::Hold::~Hold() {
  for (std::uint64_t rest = slots_; rest != 0; rest &= rest - 1)
    ::pthread_mutex_unlock(&locks_.slots_[static_cast<std::size_t>(std::countr_zero(rest))].mutex);
}

}  // namespace pario::engine
