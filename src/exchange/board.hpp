// What the ranks of a node share beside the bytes: bells to be woken by, and the state of the ring's slots.
//
// Every rank sleeps on one word of its own, its bell. Who changes what another rank may wait for rings: the designated rank of a window,
// all ranks that have put their bit into the slot's waiting mask, or one of those that are idle. Bells of ranks that are awake cost no
// system call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/base.hpp"
#include "comm/comm.hpp"

namespace pario::exchange {

inline constexpr std::uint32_t kMaxSlots = 64;

/// A slot of the ring goes through its uses, which are counted. Each use goes through the phases, whose meaning is that of the
/// job at hand; 0 is the first. `state` is both the use and its phase in one word, so that nobody takes a phase of a later use for that of
/// his own.
struct alignas(64) Slot {
  std::atomic<std::uint32_t> state, arrived, marked;
  std::atomic<std::uint32_t> order;  ///< of windows that are ready: the lower is written first (compared as a difference)
  std::uint64_t window, index;       ///< of the window that is complete; for whoever takes it
  std::uint64_t limit;               ///< reads: bytes from here on are not in the file
};

constexpr std::uint32_t kPhases = 4;
inline std::uint32_t state_of(std::uint32_t use, std::uint32_t phase) { return use * kPhases + phase; }
inline std::uint32_t phase_of(std::uint32_t state) { return state % kPhases; }

struct alignas(64) Bell {
  base::FutexWord word;
  std::atomic<std::uint32_t> sleeping;
};

struct alignas(64) Header {
  std::atomic<std::uint32_t> writing;  ///< ranks that write windows now
};

/// What somebody who waits finds: done, or how long he may sleep (0: look again at once).
struct Look {
  bool done = false;
  std::uint64_t nap_ns = ~std::uint64_t{0};
};

/// About a microsecond: the other rank may be running right now.
inline bool changes_soon(const base::FutexWord& word, std::uint32_t seen) {
  for (int spin = 0; spin < 20; ++spin) {
    if (word.load(std::memory_order_relaxed) != seen) return true;
    base::pause_cpu();
  }
  return false;
}

class Board {
 public:
  /// Collective over the node. Fails `comm` where there is no memory.
  Board(comm::Comm& comm, const comm::Patience& patience);
  bool usable() const { return memory_ != nullptr; }

  Header& header() const { return *reinterpret_cast<Header*>(memory_->data()); }
  Bell& bell(int local) const { return reinterpret_cast<Bell*>(memory_->data() + bells_)[local]; }
  Slot& slot(std::uint32_t number) const { return reinterpret_cast<Slot*>(memory_->data() + slots_)[number]; }

  void ring(int local) const;
  /// Puts this rank on the list of those that ring_waiting() rings.
  void await(std::uint32_t slot_number, int local) const { set_bit(slot_number, local); }
  void ring_waiting(std::uint32_t slot_number) const;

  /// Ranks that wait, and would rather do something for all: set before they look for it and sleep.
  void be_idle(int local) const { set_bit(kIdle, local); }
  void be_busy(int local) const;
  bool anybody_idle() const;
  /// Rings one of them.
  void ring_idle() const;

  /// Sleeps on `word`, which is changed and woken when `look` may find something new. An Error of the patience fails the Comm, and a Comm
  /// that has failed ends the wait.
  template <class F>
  base::Status wait(const base::FutexWord& word, std::atomic<std::uint32_t>& sleepers, const comm::Patience& patience, F look) const;

 private:
  static constexpr std::uint32_t kIdle = kMaxSlots;  // the list after those of the slots

  /// A bit for each local rank.
  std::atomic<std::uint64_t>* list(std::uint32_t number) const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(memory_->data() + lists_) + number * mask_words_;
  }
  void set_bit(std::uint32_t number, int local) const { list(number)[local / 64].fetch_or(std::uint64_t{1} << local % 64); }

  comm::Comm& comm_;
  int local_size_;
  std::size_t mask_words_, bells_, slots_, lists_;
  std::shared_ptr<comm::SharedMemory> memory_;
};

/// Collective over the node: memory shared by its ranks, or private to the only one. Null: the Comm has failed, at the latest by that.
std::shared_ptr<comm::SharedMemory> share(comm::Comm& comm, std::size_t size, const comm::Patience& patience);

template <class F>
base::Status Board::wait(const base::FutexWord& word, std::atomic<std::uint32_t>& sleepers, const comm::Patience& patience, F look) const {
  comm::Vigil vigil(patience);
  for (;;) {
    const std::uint32_t seen = word.load();
    const Look found = look();
    if (found.done) return {};
    if (comm_.failed()) return comm_.failure();
    if (found.nap_ns == 0 || changes_soon(word, seen)) continue;
    sleepers.fetch_add(1);
    base::futex_wait(word, seen, std::min(found.nap_ns, vigil.nap_ns()));
    sleepers.fetch_sub(1);
    if (base::Status status = vigil.keep(); !status.ok()) {
      comm_.fail(status.error());
      return comm_.failure();
    }
  }
}

}  // namespace pario::exchange
