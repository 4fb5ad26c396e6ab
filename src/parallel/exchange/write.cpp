// Collective writes through windows.
//
// The phases of a slot: filling -> ready (all bytes have arrived; waits for a rank that may write)
// -> writing -> free; or, for a window of another node, filling -> sendable -> free. Every rank
// that touches a window counts as one arrival; at the owner, the message of every other node counts
// as one, too.
//
// If the plan says so, ranks fill each window in their order: a rank waits until the lower ranks
// that touch the window have arrived.
//
// The fastest ranks write, because all others would wait for them: a rank that cannot fill a window
// writes; a rank that could fill one writes only while no other rank writes or is idle. Every rank
// looks for ready windows before it fills the next one, before it sleeps and before it returns, so
// that no ready window stays unwritten.
#include <algorithm>
#include <cstring>
#include <utility>

#include "parallel/exchange/window_message.hpp"
#include "parallel/exchange/window_run.hpp"

namespace pario::exchange {
namespace {

enum WritePhase : std::uint32_t { kFilling, kReady, kWriting, kSendable };

/// A message with bytes of a window of this node, from another node.
struct IncomingWindow {
  Step step;
  int from;
  Message message = {};
};

class WindowWriter : WindowRun {
 public:
  WindowWriter(const RunContext& setting, const pattern::Access& access)
      : WindowRun(setting), walker_(access) {}
  base::Status run();

 private:
  static constexpr std::size_t kPosted = 4;  // messages that this rank receives at a time

  void queue_messages(const Step& step);
  base::Status fill_window(const Step& step);
  bool may_fill(const Step& step) const;
  Step find_later_step(const Step& step, std::size_t windows) const;
  void add_arrival(const Step& step);
  bool counts_coverage(const Step& step) const {
    return !is_owner(step) || context_.plan.holes != plan::Holes::none;
  }

  bool write_ready_windows();
  bool should_fill(std::uint32_t others) const;
  bool claim_ready(std::uint32_t& slot_number) const;
  bool has_ready() const;
  void write_window(std::uint32_t slot_number);
  void write_with_holes(std::uint32_t slot_number, base::Extent extent,
                        std::span<const pattern::Coverage> coverages);
  void write_runs(const std::byte* image, base::Extent extent,
                  std::span<const pattern::Coverage> coverages);
  bool modify(std::byte* image, base::Extent extent, base::Extent hull,
              std::span<const pattern::Coverage> coverages);
  void write_file(std::uint64_t offset, std::span<const std::byte> data);

  bool move_messages();
  bool send_next();
  bool receive_messages();
  void merge_message(IncomingWindow& arrival);
  bool has_messages() const {
    return !sends_.empty() || !arrivals_.empty() || !send_queue_.empty();
  }
  bool awaits_messages() const { return !arrivals_.empty() || !send_queue_.empty(); }

  template <class Done>
  base::Status wait(Done done);

  pattern::Walker walker_;
  const std::uint32_t writers_ = std::max(context_.plan.writers, 1u);
  const Step* filling_ = nullptr;  ///< the window that this rank fills next
  std::deque<Step> sends_;         ///< windows of other nodes, which this rank sends
  std::deque<IncomingWindow> arrivals_;
  Buffer scratch_;
};

template <class Done>
base::Status WindowWriter::wait(Done done) {
  const auto help = [this] {
    context_.ring.mark_idle(local_);
    const bool moved = move_messages();
    return write_ready_windows() || moved;
  };
  base::Status status = wait_until(done, help, [this] { return awaits_messages(); });
  context_.ring.mark_busy(local_);
  return status;
}

base::Status WindowWriter::run() {
  const std::size_t ahead = 2 * context_.uses.size() + kPosted;
  while (const std::optional<Step> step = steps_.next()) {
    queue_messages(*step);
    base::Status status = is_touched(*step) ? fill_window(*step) : base::Status{};
    if (status.ok() && has_messages()) {
      move_messages();
      status = wait([&] { return sends_.size() + arrivals_.size() <= ahead; });
    }
    if (!status.ok()) return status;
  }
  if (base::Status status = wait([&] { return !has_messages(); }); !status.ok()) return status;
  write_ready_windows();
  if (scratch_.data) context_.buffers.put(std::move(scratch_));
  return outcome_;
}

// Queues the messages that this rank sends or receives for a window.
void WindowWriter::queue_messages(const Step& step) {
  if (context_.comm.topology().nodes() == 1 || !handles_messages(step)) return;
  if (!is_owner(step)) return sends_.push_back(step);
  for (const int node : steps_.sources(step))
    arrivals_.push_back({step, steps_.message_rank(node, step.index)});
}

base::Status WindowWriter::fill_window(const Step& step) {
  const std::size_t windows = context_.plan.in_order ? 0 : (context_.uses.size() - 1) / 2;
  const Step later = find_later_step(step, windows);
  const auto open = [&] {
    if (may_fill(step)) return true;
    // A sleeping rank is woken for several windows at a time.
    context_.ring.add_waiting(later.slot, local_);
    if (is_open(later)) context_.ring.add_waiting(step.slot, local_);
    return may_fill(step);
  };
  filling_ = &step;
  if (base::Status status = wait(open); !status.ok()) return status;
  write_ready_windows();
  filling_ = nullptr;
  const pattern::Coverage coverage =
      counts_coverage(step) ? own_coverage(step) : pattern::Coverage{nullptr, context_.granule};
  store_into(step, context_.counters.copy_ns, [&](bool non_temporal) {
    return walker_.gather(step.extent, image(step.slot), coverage,
                          non_temporal ? pattern::Stores::past_caches : pattern::Stores::cached);
  });
  add_arrival(step);
  return {};
}

// True if this rank may copy its bytes into a window now.
bool WindowWriter::may_fill(const Step& step) const {
  if (!is_open(step) || !context_.plan.in_order) return is_open(step);
  const auto touches = [&](int rank) { return rank < rank_ && steps_.touches(rank, step.extent); };
  const auto before = std::ranges::count_if(context_.comm.node_ranks(), touches);
  return std::cmp_equal(slot(step).arrived.load(), before);
}

// Returns the slot that opens `windows` after that of `step`.
Step WindowWriter::find_later_step(const Step& step, std::size_t windows) const {
  const auto slot = static_cast<std::uint32_t>((step.slot + windows) % context_.uses.size());
  return {.slot = slot, .use = slot == step.slot ? step.use : context_.uses[slot]};
}

void WindowWriter::add_arrival(const Step& step) {
  Slot& slot = this->slot(step);
  if (slot.arrived.fetch_add(1) + 1 < step.parties()) {
    if (context_.plan.in_order) context_.ring.wake_waiting(step.slot);
    return;
  }
  if (!is_owner(step)) {
    set_phase(step, kSendable);
    return wake_message_rank(step);
  }
  slot.window = step.window;
  slot.index = step.index;
  slot.order.store(static_cast<std::uint32_t>(step.index));
  set_phase(step, kReady);
  if (context_.ring.header().writing.load() < writers_) context_.ring.wake_idle();
}

// Writes ready windows while the plan allows one more writer. A writer checks again before it
// returns. True: it wrote some.
bool WindowWriter::write_ready_windows() {
  std::atomic<std::uint32_t>& writing = context_.ring.header().writing;
  bool found = false;
  for (std::uint32_t now = writing.load(); has_ready() && now < writers_; now = writing.load()) {
    if (should_fill(now)) {
      context_.ring.wake_idle();
      break;
    }
    if (!writing.compare_exchange_strong(now, now + 1)) continue;
    context_.ring.mark_busy(local_);
    for (std::uint32_t slot_number = 0;
         !should_fill(writing.load() - 1) && claim_ready(slot_number);)
      write_window(slot_number);
    writing.fetch_sub(1);
    found = true;
  }
  return found;
}

// True if this rank should fill its next window, because `others` write or an idle rank could
// write.
bool WindowWriter::should_fill(std::uint32_t others) const {
  return filling_ != nullptr && may_fill(*filling_) && (others > 0 || context_.ring.has_idle());
}

bool WindowWriter::has_ready() const {
  for (std::uint32_t number = 0; number < context_.uses.size(); ++number)
    if (phase_of(context_.ring.slot(number).state.load()) == kReady) return true;
  return false;
}

// Claims the first ready window in file order, so that files grow in order.
bool WindowWriter::claim_ready(std::uint32_t& slot_number) const {
  for (;;) {
    Slot* first = nullptr;
    std::uint32_t ready = 0;
    for (std::uint32_t number = 0; number < context_.uses.size(); ++number) {
      Slot& slot = context_.ring.slot(number);
      const std::uint32_t state = slot.state.load();
      if (phase_of(state) != kReady ||
          (first && static_cast<std::int32_t>(slot.order.load() - first->order.load()) > 0))
        continue;
      first = &slot;
      ready = state;
      slot_number = number;
    }
    if (!first) return false;
    if (first->state.compare_exchange_strong(ready, ready - kReady + kWriting)) return true;
  }
}

void WindowWriter::write_window(std::uint32_t slot_number) {
  const Slot& slot = context_.ring.slot(slot_number);
  const base::Extent extent = context_.plan.extent_of(slot.window);
  if (context_.plan.holes == plan::Holes::none) {
    write_file(extent.begin, {image(slot_number), extent.length()});
  } else {
    const std::vector<pattern::Coverage> coverages =
        find_coverages(slot_number, extent, slot.index);
    if (pattern::CoverageRuns(extent, coverages).next() == extent)
      write_file(extent.begin, {image(slot_number), extent.length()});
    else
      write_with_holes(slot_number, extent, coverages);
    clear_coverages(coverages, extent);
  }
  free_slot(slot_number);
}

void WindowWriter::write_with_holes(std::uint32_t slot_number, base::Extent extent,
                                    std::span<const pattern::Coverage> coverages) {
  base::Extent hull = {};
  std::uint64_t count = 0, covered = 0;
  pattern::CoverageRuns runs(extent, coverages);
  for (base::Extent run = runs.next(); !run.empty(); run = runs.next()) {
    hull = base::hull(hull, run);
    covered += run.length();
    ++count;
  }
  if (count == 0) return;
  const std::uint64_t holes = hull.length() - covered;
  context_.counters.gap_bytes += holes;
  std::byte* const image = this->image(slot_number);
  const plan::Holes way = plan::choose_holes(context_.plan, count, covered, holes);
  if (way != plan::Holes::modify || !modify(image, extent, hull, coverages))
    write_runs(image, extent, coverages);
}

void WindowWriter::write_runs(const std::byte* image, base::Extent extent,
                              std::span<const pattern::Coverage> coverages) {
  pattern::CoverageRuns runs(extent, coverages);
  for (base::Extent run = runs.next(); !run.empty(); run = runs.next())
    write_file(run.begin, {image + (run.begin - extent.begin), run.length()});
}

// Writes the window with the bytes of its holes. False: the bytes of the holes must not be written
// back or cannot be read (the file may be open for writing only); the runs can still be written.
bool WindowWriter::modify(std::byte* image, base::Extent extent, base::Extent hull,
                          std::span<const pattern::Coverage> coverages) {
  if (scratch_.capacity < hull.length())
    scratch_ = context_.buffers.get(std::max(hull.length(), extent.length()));
  std::byte* const old = scratch_.data.get();
  HoleWriter writer(context_.file, context_.counters);
  if (!writer.begin(hull, old).ok()) return false;
  std::uint64_t at = hull.begin;
  pattern::CoverageRuns runs(extent, coverages);
  for (base::Extent run = runs.next(); !run.empty(); run = runs.next()) {
    std::memcpy(image + (at - extent.begin), old + (at - hull.begin), run.begin - at);
    at = run.end;
  }
  keep_error(writer.write_back(image + (hull.begin - extent.begin)));
  return true;
}

void WindowWriter::write_file(std::uint64_t offset, std::span<const std::byte> data) {
  keep_error(write_counted(context_.file, offset, data, context_.counters));
}

bool WindowWriter::move_messages() {
  if (!has_messages()) return false;
  const bool left = send_queue_.remove_sent();
  const bool sent = send_next();
  const bool came = receive_messages();
  return left || sent || came;
}

bool WindowWriter::send_next() {
  if (sends_.empty() || send_queue_.full() || !has_phase(sends_.front(), kSendable)) return false;
  const Step step = sends_.front();
  sends_.pop_front();
  {
    const Timer timer(context_.counters.message_ns);
    const std::vector<pattern::Coverage> coverages =
        find_coverages(step.slot, step.extent, step.index);
    send(steps_.message_rank(step.owner, step.index), data_tag(step.index),
         pack_window_message(context_.buffers, step.extent, coverages, context_.granule,
                             image(step.slot)));
    clear_coverages(coverages, step.extent);
  }
  free_slot(step.slot);
  return true;
}

bool WindowWriter::receive_messages() {
  bool found = false;
  for (std::size_t i = 0; i < std::min(arrivals_.size(), kPosted);) {
    IncomingWindow& arrival = arrivals_[i];
    const base::Extent extent = arrival.step.extent;
    if (!arrival.message.is_posted())
      arrival.message = receive(arrival.from, data_tag(arrival.step.index),
                                message_limit(extent.length(), context_.granule) + extent.length());
    if (!arrival.message.test() || !is_open(arrival.step)) {
      ++i;
      continue;
    }
    merge_message(arrival);
    arrivals_.erase(arrivals_.begin() + static_cast<std::ptrdiff_t>(i));
    found = true;
  }
  return found;
}

void WindowWriter::merge_message(IncomingWindow& arrival) {
  const Step step = arrival.step;
  {
    const Timer timer(context_.counters.message_ns);
    WindowMessage window_message(arrival.message.buffer().bytes(), step.extent, context_.granule);
    const std::byte* bytes = window_message.bytes();
    while (const std::optional<base::Extent> run = window_message.next()) {
      std::memcpy(image(step.slot) + (run->begin - step.extent.begin), bytes, run->length());
      bytes += run->length();
      if (counts_coverage(step)) set_bits(own_coverage(step), step.extent, *run);
    }
  }
  context_.buffers.put(std::move(arrival.message.buffer()));
  add_arrival(step);
}

}  // namespace

base::Status run_writes(const RunContext& setting, const pattern::Access& access) {
  return WindowWriter(setting, access).run();
}

}  // namespace pario::exchange
