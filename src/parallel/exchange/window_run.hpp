// The common part of collective reads and writes through windows: slots, wake words, messages, the
// first error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "parallel/exchange/exchange.hpp"
#include "parallel/exchange/messages.hpp"
#include "parallel/exchange/shared_ring.hpp"
#include "parallel/exchange/steps.hpp"
#include "parallel/exchange/store_choice.hpp"
#include "parallel/exchange/tags.hpp"

namespace pario::exchange {

/// The objects and memory of one run.
struct RunContext {
  comm::Comm& comm;
  SharedRing& ring;
  Buffers& buffers;
  const plan::Plan& plan;
  std::span<const base::Extent> spans;  ///< by rank
  std::span<std::uint32_t> uses;        ///< by slot
  std::byte* images;                    ///< slots, `image_size` bytes each
  std::uint64_t image_size;
  std::uint64_t*
      words;  ///< coverage: by slot and local rank, `area_words` each; all zero between runs
  std::uint64_t area_words;
  std::uint64_t granule;
  WindowFile& file;
  const comm::Patience& patience;
  Counters& counters;
  StoreChoice& store_choice;  ///< of this direction
};

class WindowRun {
 protected:
  explicit WindowRun(const RunContext& setting);

  Slot& slot(const Step& step) const { return context_.ring.slot(step.slot); }
  std::byte* image(std::uint32_t slot_number) const {
    return context_.images + slot_number * context_.image_size;
  }
  pattern::Coverage coverage_of(std::uint32_t slot_number, int local) const {
    return {context_.words +
                (slot_number * static_cast<std::uint64_t>(locals_) + local) * context_.area_words,
            context_.granule};
  }
  pattern::Coverage own_coverage(const Step& step) const { return coverage_of(step.slot, local_); }

  /// True if the slot belongs to this step now.
  bool is_open(const Step& step) const {
    const std::uint32_t state = slot(step).state.load();
    return state == state_of(step.use, phase_of(state));
  }
  bool has_phase(const Step& step, std::uint32_t phase) const {
    return slot(step).state.load() == state_of(step.use, phase);
  }
  void set_phase(const Step& step, std::uint32_t phase) const {
    slot(step).state.store(state_of(step.use, phase));
  }
  bool is_owner(const Step& step) const { return step.owner == node_; }
  bool is_touched(const Step& step) const { return steps_.touches(rank_, step.extent); }
  int message_rank(std::uint64_t index) const { return steps_.message_rank(node_, index); }
  bool handles_messages(const Step& step) const { return message_rank(step.index) == rank_; }
  void wake_message_rank(const Step& step) const;
  /// Calls `store(non_temporal)`, which returns the bytes that it has stored in the window, and
  /// adds its time to `sum_ns`.
  template <class Store>
  void store_into(const Step& step, std::uint64_t& sum_ns, Store store);

  /// Returns the coverages of a slot that may have bits: those of the ranks that touch the window,
  /// and of the message rank.
  std::vector<pattern::Coverage> find_coverages(std::uint32_t slot_number, base::Extent extent,
                                                std::uint64_t index) const;
  void clear_coverages(std::span<const pattern::Coverage> coverages, base::Extent extent) const;
  /// Opens the slot for its next use.
  void free_slot(std::uint32_t slot_number) const;

  void send(int to, int tag, Buffer message);
  Message receive(int from, int tag, std::size_t size);
  /// Keeps the error of the file unless there is an earlier one.
  void keep_error(base::Status status);

  /// Returns the time that is not counted as waiting.
  std::uint64_t worked_ns() const {
    return context_.counters.copy_ns + context_.counters.message_ns + context_.counters.file_ns;
  }
  /// Sleeps until `done()`. `move_messages()` sends and receives messages that other ranks wait
  /// for, and returns true if there were some. Polls for messages while `awaits_messages()`.
  template <class Done, class Pump, class Expecting>
  base::Status wait_until(Done done, Pump move_messages, Expecting awaits_messages);

  const RunContext& context_;
  const int rank_, node_, local_, locals_;
  Steps steps_;
  SendQueue send_queue_;
  base::Status outcome_ = {};
};

template <class Store>
void WindowRun::store_into(const Step& step, std::uint64_t& sum_ns, Store store) {
  const bool shared = locals_ > 1 && step.use > 0;  // unused memory is in no cache
  const bool non_temporal = shared && context_.store_choice.use_non_temporal();
  const std::uint64_t begin = base::monotonic_ns();
  const std::uint64_t bytes = store(non_temporal);
  const std::uint64_t took_ns = base::monotonic_ns() - begin;
  sum_ns += took_ns;
  if (shared) context_.store_choice.add_sample(non_temporal, bytes, took_ns);
}

template <class Done, class Pump, class Expecting>
base::Status WindowRun::wait_until(Done done, Pump move_messages, Expecting awaits_messages) {
  constexpr std::uint64_t kFirstNap = 5'000,
                          kLongestNap = 200'000;  // the MPI moves a part of a message at a time
  if (done()) return {};
  WakeWord& wake_word = context_.ring.wake_word(local_);
  std::uint64_t nap = kFirstNap;
  const auto look = [&]() -> Poll {
    if (done()) return {true};
    if (move_messages()) {
      nap = kFirstNap;
      return {false, 0};
    }
    if (!awaits_messages()) return {};
    nap = std::min(nap + nap / 4, kLongestNap);
    return {false, nap};
  };
  const std::uint64_t begin = base::monotonic_ns(), worked = worked_ns();
  base::Status status =
      context_.ring.wait(wake_word.word, wake_word.sleeping, context_.patience, look);
  context_.counters.wait_ns += base::monotonic_ns() - begin - (worked_ns() - worked);
  return status;
}

/// Runs of a plan; both end early only when the Comm has failed.
base::Status run_writes(const RunContext& setting, const pattern::Access& access);
base::Status run_reads(const RunContext& setting, const pattern::Access& access,
                       std::uint64_t& bytes_read);

}  // namespace pario::exchange
