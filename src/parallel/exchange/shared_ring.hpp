// The state that the ranks of a node share beside the bytes: the slots of the ring of windows, and
// one wake word for each rank.
//
// Every rank sleeps on a word of its own. A change wakes the ranks that may wait for it: the
// message rank of a window, all ranks in the slot's waiting mask, or one idle rank. Waking a rank
// that is awake costs no system call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/base.hpp"
#include "core/comm/comm.hpp"

namespace pario::exchange {

inline constexpr std::uint32_t kMaxSlots = 64;

/// A slot of the ring. It is used again and again; each use has a number and phases that the run
/// defines (WritePhase, ReadPhase); 0 is the first phase. `state` holds use and phase in one word,
/// so that no rank mistakes the phase of a later use for that of its own.
struct alignas(64) Slot {
  std::atomic<std::uint32_t> state, arrived, marked;
  std::atomic<std::uint32_t>
      order;  ///< of ready windows: the lowest is written first (compared as a difference)
  std::uint64_t window, index;  ///< of the complete window; for the rank that writes it
  std::uint64_t limit;          ///< reads: bytes from here on lie behind the end of the file
};

constexpr std::uint32_t kPhases = 4;
inline std::uint32_t state_of(std::uint32_t use, std::uint32_t phase) {
  return use * kPhases + phase;
}
inline std::uint32_t phase_of(std::uint32_t state) { return state % kPhases; }

struct alignas(64) WakeWord {
  base::FutexWord word;
  std::atomic<std::uint32_t> sleeping;
};

struct alignas(64) Header {
  std::atomic<std::uint32_t> writing;  ///< ranks that write windows now
};

/// The result of one check of a waiting rank: done, or the time to sleep (0: check again).
struct Poll {
  bool done = false;
  std::uint64_t nap_ns = ~std::uint64_t{0};
};

/// Spins for about a microsecond, because the other rank may be running now.
inline bool changes_soon(const base::FutexWord& word, std::uint32_t seen) {
  for (int spin = 0; spin < 20; ++spin) {
    if (word.load(std::memory_order_relaxed) != seen) return true;
    base::pause_cpu();
  }
  return false;
}

class SharedRing {
 public:
  /// Collective over the node. Fails `comm` if memory cannot be allocated.
  SharedRing(comm::Comm& comm, const comm::Patience& patience);
  bool usable() const { return memory_ != nullptr; }

  Header& header() const { return *reinterpret_cast<Header*>(memory_->data()); }
  WakeWord& wake_word(int local) const {
    return reinterpret_cast<WakeWord*>(memory_->data() + wake_words_)[local];
  }
  Slot& slot(std::uint32_t number) const {
    return reinterpret_cast<Slot*>(memory_->data() + slots_)[number];
  }

  void wake(int local) const;
  /// Adds this rank to the ranks that wake_waiting() wakes.
  void add_waiting(std::uint32_t slot_number, int local) const { set_bit(slot_number, local); }
  void wake_waiting(std::uint32_t slot_number) const;

  /// Idle ranks wait and could write a window; they mark themselves before they check and sleep.
  void mark_idle(int local) const { set_bit(kIdle, local); }
  void mark_busy(int local) const;
  bool has_idle() const;
  /// Wakes one idle rank.
  void wake_idle() const;

  /// Sleeps on `word` until `look` returns done; `word` must change and be woken whenever the
  /// result of `look` may change. An Error of the Patience fails the Comm; a failed Comm ends the
  /// wait.
  template <class F>
  base::Status wait(const base::FutexWord& word, std::atomic<std::uint32_t>& sleepers,
                    const comm::Patience& patience, F look) const;

 private:
  static constexpr std::uint32_t kIdle = kMaxSlots;  // the list after those of the slots

  /// One bit for each local rank.
  std::atomic<std::uint64_t>* list(std::uint32_t number) const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(memory_->data() + lists_) +
           number * mask_words_;
  }
  void set_bit(std::uint32_t number, int local) const {
    list(number)[local / 64].fetch_or(std::uint64_t{1} << local % 64);
  }

  comm::Comm& comm_;
  int local_size_;
  std::size_t mask_words_, wake_words_, slots_, lists_;
  std::shared_ptr<comm::SharedMemory> memory_;
};

/// Collective over the node: allocates memory shared by its ranks, or private to the only one.
/// Null: the Comm has failed.
std::shared_ptr<comm::SharedMemory> share(comm::Comm& comm, std::size_t size,
                                          const comm::Patience& patience);

template <class F>
base::Status SharedRing::wait(const base::FutexWord& word, std::atomic<std::uint32_t>& sleepers,
                              const comm::Patience& patience, F look) const {
  comm::PatienceTimer timer(patience);
  for (;;) {
    const std::uint32_t seen = word.load();
    const Poll found = look();
    if (found.done) return {};
    if (comm_.has_failed()) return comm_.failure();
    if (found.nap_ns == 0 || changes_soon(word, seen)) continue;
    sleepers.fetch_add(1);
    base::futex_wait(word, seen, std::min(found.nap_ns, timer.nap_ns()));
    sleepers.fetch_sub(1);
    if (base::Status status = timer.call_due(); !status.ok()) {
      comm_.fail(status.error());
      return comm_.failure();
    }
  }
}

}  // namespace pario::exchange
