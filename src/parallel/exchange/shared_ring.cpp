#include "parallel/exchange/shared_ring.hpp"

#include <cerrno>
#include <string>

namespace pario::exchange {

std::shared_ptr<comm::SharedMemory> share(comm::Comm& comm, std::size_t size,
                                          const comm::Patience& patience) {
  auto memory = comm.local_size() > 1 ? comm.share(size, patience) : comm::private_memory(size);
  if (!memory)
    comm.fail({.number = ENOMEM,
               .operation = "share",
               .rank = comm.rank(),
               .detail = "no " + std::to_string(size) +
                         " bytes of shared memory for collective buffers"});
  return memory;
}

SharedRing::SharedRing(comm::Comm& comm, const comm::Patience& patience)
    : comm_(comm), local_size_(comm.local_size()) {
  const auto locals = static_cast<std::size_t>(local_size_);
  mask_words_ = base::round_up((locals + 63) / 64, 8);
  wake_words_ = base::round_up(sizeof(Header), 64);
  slots_ = wake_words_ + locals * sizeof(WakeWord);
  lists_ = slots_ + kMaxSlots * sizeof(Slot);
  memory_ = share(comm, lists_ + (kMaxSlots + 1) * mask_words_ * sizeof(std::uint64_t), patience);
}

void SharedRing::wake(int local) const {
  WakeWord& wake_word = this->wake_word(local);
  wake_word.word.fetch_add(1);
  if (wake_word.sleeping.load() != 0) base::futex_wake(wake_word.word);
}

void SharedRing::wake_waiting(std::uint32_t slot_number) const {
  for (int first = 0; first < local_size_; first += 64) {
    std::atomic<std::uint64_t>& mask = list(slot_number)[first / 64];
    for (std::uint64_t bits = mask.load() == 0 ? 0 : mask.exchange(0); bits != 0; bits &= bits - 1)
      wake(first + __builtin_ctzll(bits));
  }
}

void SharedRing::mark_busy(int local) const {
  const std::uint64_t bit = std::uint64_t{1} << local % 64;
  std::atomic<std::uint64_t>& mask = list(kIdle)[local / 64];
  if ((mask.load() & bit) != 0) mask.fetch_and(~bit);
}

bool SharedRing::has_idle() const {
  for (int first = 0; first < local_size_; first += 64)
    if (list(kIdle)[first / 64].load() != 0) return true;
  return false;
}

void SharedRing::wake_idle() const {
  for (int first = 0; first < local_size_; first += 64)
    if (const std::uint64_t bits = list(kIdle)[first / 64].load(); bits != 0)
      return wake(first + __builtin_ctzll(bits));
}

}  // namespace pario::exchange
