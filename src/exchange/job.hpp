// What writing and reading through windows have in common: the slots, the bells, the messages, the first failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exchange/board.hpp"
#include "exchange/detour.hpp"
#include "exchange/exchange.hpp"
#include "exchange/mail.hpp"
#include "exchange/steps.hpp"
#include "exchange/tags.hpp"

namespace pario::exchange {

/// What a run works with.
struct Setting {
  comm::Comm& comm;
  Board& board;
  Buffers& buffers;
  const plan::Plan& plan;
  std::span<const base::Extent> spans;  ///< by rank
  std::span<std::uint32_t> uses;        ///< by slot
  std::byte* images;                    ///< slots, `image_size` bytes each
  std::uint64_t image_size;
  std::uint64_t* words;  ///< coverage: by slot and local rank, `area_words` each; all zero between runs
  std::uint64_t area_words;
  std::uint64_t granule;
  Sink& sink;
  ChooseHoles choose;
  const void* context;
  const comm::Patience& patience;
  Tally& tally;
  Detour& detour;  ///< of this direction
};

class Job {
 protected:
  explicit Job(const Setting& setting);

  Slot& slot(const Step& step) const { return setting_.board.slot(step.slot); }
  std::byte* image(std::uint32_t slot_number) const { return setting_.images + slot_number * setting_.image_size; }
  pattern::Coverage area(std::uint32_t slot_number, int local) const {
    return {setting_.words + (slot_number * static_cast<std::uint64_t>(locals_) + local) * setting_.area_words, setting_.granule};
  }
  pattern::Coverage my_area(const Step& step) const { return area(step.slot, local_); }

  /// The slot is this step's now.
  bool is_open(const Step& step) const {
    const std::uint32_t state = slot(step).state.load();
    return state == state_of(step.use, phase_of(state));
  }
  bool is_in(const Step& step, std::uint32_t phase) const { return slot(step).state.load() == state_of(step.use, phase); }
  void enter(const Step& step, std::uint32_t phase) const { slot(step).state.store(state_of(step.use, phase)); }
  bool mine(const Step& step) const { return step.owner == node_; }
  bool touched(const Step& step) const { return steps_.touches(rank_, step.stretch); }
  int speaker(std::uint64_t index) const { return steps_.speaker(node_, index); }
  bool speaks(const Step& step) const { return speaker(step.index) == rank_; }
  void ring_speaker(const Step& step) const;
  /// Calls `store(past_caches)`, which returns the bytes that it has put into the window, and adds what it took to `sum_ns`.
  template <class Store>
  void store_into(const Step& step, std::uint64_t& sum_ns, Store store);

  /// Coverages of a slot that may have bits: of the ranks that touch the stretch, and of the one that receives.
  std::vector<pattern::Coverage> areas(std::uint32_t slot_number, base::Extent stretch, std::uint64_t index) const;
  void clear(std::span<const pattern::Coverage> coverages, base::Extent stretch) const;
  /// Opens the slot for its next use.
  void free_slot(std::uint32_t slot_number) const;

  void send(int to, int tag, Buffer message);
  Letter receive(int from, int tag, std::size_t size);
  /// Keeps the first failure of the file.
  void keep(base::Status status);

  /// What has been counted as something else than waiting.
  std::uint64_t worked_ns() const { return setting_.tally.copy_ns + setting_.tally.message_ns + setting_.tally.file_ns; }
  /// Sleeps until `done()`; `pump()` does what others wait for and says whether there was something. While `expecting()` messages, looks
  /// for them again and again.
  template <class Done, class Pump, class Expecting>
  base::Status until(Done done, Pump pump, Expecting expecting);

  const Setting& setting_;
  const int rank_, node_, local_, locals_;
  Steps steps_;
  Outbox outbox_;
  base::Status outcome_ = {};
};

/// Adds the time it lives to a counter of nanoseconds.
class Timed {
 public:
  explicit Timed(std::uint64_t& sum) : sum_(sum), begin_(base::monotonic_ns()) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() { sum_ += base::monotonic_ns() - begin_; }

 private:
  std::uint64_t& sum_;
  std::uint64_t begin_;
};

template <class Store>
void Job::store_into(const Step& step, std::uint64_t& sum_ns, Store store) {
  const bool shared = locals_ > 1 && step.use > 0;  // what nobody has had yet is in nobody's cache
  const bool past_caches = shared && setting_.detour.next();
  const std::uint64_t begin = base::monotonic_ns();
  const std::uint64_t bytes = store(past_caches);
  const std::uint64_t took_ns = base::monotonic_ns() - begin;
  sum_ns += took_ns;
  if (shared) setting_.detour.took(past_caches, bytes, took_ns);
}

template <class Done, class Pump, class Expecting>
base::Status Job::until(Done done, Pump pump, Expecting expecting) {
  constexpr std::uint64_t kFirstNap = 5'000, kLongestNap = 200'000;  // the MPI moves a part of a message at a time
  if (done()) return {};
  Bell& bell = setting_.board.bell(local_);
  std::uint64_t nap = kFirstNap;
  const auto look = [&]() -> Look {
    if (done()) return {true};
    if (pump()) {
      nap = kFirstNap;
      return {false, 0};
    }
    if (!expecting()) return {};
    nap = std::min(nap + nap / 4, kLongestNap);
    return {false, nap};
  };
  const std::uint64_t begin = base::monotonic_ns(), worked = worked_ns();
  base::Status status = setting_.board.wait(bell.word, bell.sleeping, setting_.patience, look);
  setting_.tally.wait_ns += base::monotonic_ns() - begin - (worked_ns() - worked);
  return status;
}

/// Runs of a plan; both end early only when the Comm has failed.
base::Status run_writes(const Setting& setting, const pattern::Access& access);
base::Status run_reads(const Setting& setting, const pattern::Access& access, std::uint64_t& bytes_read);

}  // namespace pario::exchange
