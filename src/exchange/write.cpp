// Writing through windows.
//
// A slot's phases: filling -> ready (all bytes have arrived; waits for a rank that may write) -> taken (is written) -> free; or, for a
// window of another node, filling -> sendable -> free. Every rank that touches a window arrives once, at the owner every other node's
// parcel does.
//
// Writing is for those that have come farthest, since the others are waited for: a rank that can fill no window writes; one that could
// fill writes only as long as nobody else writes or is idle. Every rank looks for windows that are ready before it fills the next one,
// before it sleeps and before it goes, so that none is left.
#include <algorithm>
#include <cstring>

#include "exchange/job.hpp"
#include "exchange/parcel.hpp"

namespace pario::exchange {
namespace {

enum WritePhase : std::uint32_t { kFilling, kReady, kTaken, kSendable };

/// A parcel that will come.
struct Arrival {
  Step step;
  int from;
  Letter letter = {};
};

class WriteJob : Job {
 public:
  WriteJob(const Setting& setting, const pattern::Access& access) : Job(setting), walker_(access) {}
  base::Status run();

 private:
  static constexpr std::size_t kPosted = 4;  // parcels that may be on their way to this rank

  void enlist(const Step& step);
  base::Status fill(const Step& step);
  Step after(const Step& step, std::size_t windows) const;
  void arrive(const Step& step);
  bool counts_coverage(const Step& step) const { return !mine(step) || setting_.plan.holes != plan::Holes::none; }

  bool write_ready();
  bool is_relieved(std::uint32_t others) const;
  bool take_ready(std::uint32_t& slot_number) const;
  bool any_ready() const;
  void write_window(std::uint32_t slot_number);
  void write_holed(std::uint32_t slot_number, base::Extent stretch, std::span<const pattern::Coverage> coverages);
  void write_runs(const std::byte* image, base::Extent stretch, std::span<const pattern::Coverage> coverages);
  bool fill_holes(std::byte* image, base::Extent stretch, base::Extent hull, std::span<const pattern::Coverage> coverages);
  void write_file(std::uint64_t offset, std::span<const std::byte> data);

  bool pump();
  bool send_next();
  bool receive_some();
  void merge(Arrival& arrival);
  bool busy() const { return !sends_.empty() || !arrivals_.empty() || !outbox_.empty(); }
  bool expecting() const { return !arrivals_.empty() || !outbox_.empty(); }

  template <class Done>
  base::Status wait(Done done);

  pattern::Walker walker_;
  const std::uint32_t writers_ = std::max(setting_.plan.writers, 1u);
  const Step* filling_ = nullptr;  ///< the window that this rank fills next
  std::deque<Step> sends_;         ///< windows of other nodes, to be sent by this rank once they are complete
  std::deque<Arrival> arrivals_;
  Buffer scratch_;
};

template <class Done>
base::Status WriteJob::wait(Done done) {
  const auto help = [this] {
    setting_.board.be_idle(local_);
    const bool moved = pump();
    return write_ready() || moved;
  };
  base::Status status = until(done, help, [this] { return expecting(); });
  setting_.board.be_busy(local_);
  return status;
}

base::Status WriteJob::run() {
  const std::size_t ahead = 2 * setting_.uses.size() + kPosted;
  while (const std::optional<Step> step = steps_.next()) {
    enlist(*step);
    base::Status status = touched(*step) ? fill(*step) : base::Status{};
    if (status.ok() && busy()) {
      pump();
      status = wait([&] { return sends_.size() + arrivals_.size() <= ahead; });
    }
    if (!status.ok()) return status;
  }
  if (base::Status status = wait([&] { return !busy(); }); !status.ok()) return status;
  write_ready();
  if (scratch_.data) setting_.buffers.give(std::move(scratch_));
  return outcome_;
}

// What this rank has to do for a window beside its own bytes.
void WriteJob::enlist(const Step& step) {
  if (setting_.comm.topology().nodes() == 1 || !speaks(step)) return;
  if (!mine(step)) return sends_.push_back(step);
  for (const int node : steps_.sources(step)) arrivals_.push_back({step, steps_.speaker(node, step.index)});
}

base::Status WriteJob::fill(const Step& step) {
  const Step later = after(step, (setting_.uses.size() - 1) / 2);
  const auto open = [&] {
    if (is_open(step)) return true;
    // Who sleeps is woken for several windows at a time.
    setting_.board.await(later.slot, local_);
    if (is_open(later)) setting_.board.await(step.slot, local_);
    return is_open(step);
  };
  filling_ = &step;
  if (base::Status status = wait(open); !status.ok()) return status;
  write_ready();
  filling_ = nullptr;
  const pattern::Coverage coverage = counts_coverage(step) ? my_area(step) : pattern::Coverage{nullptr, setting_.granule};
  store_into(step, setting_.tally.copy_ns, [&](bool past_caches) {
    return walker_.gather(step.stretch, image(step.slot), coverage, past_caches ? pattern::Stores::past_caches : pattern::Stores::cached);
  });
  arrive(step);
  return {};
}

// The slot that will be open `windows` after this one's.
Step WriteJob::after(const Step& step, std::size_t windows) const {
  const auto slot = static_cast<std::uint32_t>((step.slot + windows) % setting_.uses.size());
  return {.slot = slot, .use = slot == step.slot ? step.use : setting_.uses[slot]};
}

void WriteJob::arrive(const Step& step) {
  Slot& slot = this->slot(step);
  if (slot.arrived.fetch_add(1) + 1 < step.parties()) return;
  if (!mine(step)) {
    enter(step, kSendable);
    return ring_speaker(step);
  }
  slot.window = step.window;
  slot.index = step.index;
  slot.order.store(static_cast<std::uint32_t>(step.index));
  enter(step, kReady);
  if (setting_.board.header().writing.load() < writers_) setting_.board.ring_idle();
}

// So many ranks write as the plan allows; who writes looks again before it goes. True: there was something.
bool WriteJob::write_ready() {
  std::atomic<std::uint32_t>& writing = setting_.board.header().writing;
  bool found = false;
  for (std::uint32_t now = writing.load(); any_ready() && now < writers_; now = writing.load()) {
    if (is_relieved(now)) {
      setting_.board.ring_idle();
      break;
    }
    if (!writing.compare_exchange_strong(now, now + 1)) continue;
    setting_.board.be_busy(local_);
    for (std::uint32_t slot_number = 0; !is_relieved(writing.load() - 1) && take_ready(slot_number);) write_window(slot_number);
    writing.fetch_sub(1);
    found = true;
  }
  return found;
}

// This rank should fill its next window: `others` write, or somebody could who has nothing to do.
bool WriteJob::is_relieved(std::uint32_t others) const {
  return filling_ != nullptr && is_open(*filling_) && (others > 0 || setting_.board.anybody_idle());
}

bool WriteJob::any_ready() const {
  for (std::uint32_t number = 0; number < setting_.uses.size(); ++number)
    if (phase_of(setting_.board.slot(number).state.load()) == kReady) return true;
  return false;
}

// The first window of those that are ready, so that files grow in order.
bool WriteJob::take_ready(std::uint32_t& slot_number) const {
  for (;;) {
    Slot* first = nullptr;
    std::uint32_t ready = 0;
    for (std::uint32_t number = 0; number < setting_.uses.size(); ++number) {
      Slot& slot = setting_.board.slot(number);
      const std::uint32_t state = slot.state.load();
      if (phase_of(state) != kReady || (first && static_cast<std::int32_t>(slot.order.load() - first->order.load()) > 0)) continue;
      first = &slot;
      ready = state;
      slot_number = number;
    }
    if (!first) return false;
    if (first->state.compare_exchange_strong(ready, ready - kReady + kTaken)) return true;
  }
}

void WriteJob::write_window(std::uint32_t slot_number) {
  const Slot& slot = setting_.board.slot(slot_number);
  const base::Extent stretch = setting_.plan.extent_of(slot.window);
  if (setting_.plan.holes == plan::Holes::none) {
    write_file(stretch.begin, {image(slot_number), stretch.length()});
  } else {
    const std::vector<pattern::Coverage> coverages = areas(slot_number, stretch, slot.index);
    if (pattern::CoverageRuns(stretch, coverages).next() == stretch)
      write_file(stretch.begin, {image(slot_number), stretch.length()});
    else
      write_holed(slot_number, stretch, coverages);
    clear(coverages, stretch);
  }
  free_slot(slot_number);
}

void WriteJob::write_holed(std::uint32_t slot_number, base::Extent stretch, std::span<const pattern::Coverage> coverages) {
  base::Extent hull = {};
  std::uint64_t count = 0, covered = 0;
  pattern::CoverageRuns runs(stretch, coverages);
  for (base::Extent run = runs.next(); !run.empty(); run = runs.next()) {
    hull = base::hull(hull, run);
    covered += run.length();
    ++count;
  }
  if (count == 0) return;
  const std::uint64_t holes = hull.length() - covered;
  setting_.tally.hole_bytes += holes;
  plan::Holes way = setting_.plan.holes;
  if (way == plan::Holes::choose) way = setting_.choose ? setting_.choose(count, covered, holes, setting_.context) : plan::Holes::runs;
  std::byte* const image = this->image(slot_number);
  if (holes > 0 && way == plan::Holes::modify && fill_holes(image, stretch, hull, coverages))
    write_file(hull.begin, {image + (hull.begin - stretch.begin), hull.length()});
  else
    write_runs(image, stretch, coverages);
}

void WriteJob::write_runs(const std::byte* image, base::Extent stretch, std::span<const pattern::Coverage> coverages) {
  pattern::CoverageRuns runs(stretch, coverages);
  for (base::Extent run = runs.next(); !run.empty(); run = runs.next())
    write_file(run.begin, {image + (run.begin - stretch.begin), run.length()});
}

// False: the file cannot be read (it may be open for writing only); the runs can still be written.
bool WriteJob::fill_holes(std::byte* image, base::Extent stretch, base::Extent hull, std::span<const pattern::Coverage> coverages) {
  if (scratch_.capacity < hull.length()) scratch_ = setting_.buffers.take(std::max(hull.length(), stretch.length()));
  std::byte* const old = scratch_.data.get();
  {
    const Timed timed(setting_.tally.file_ns);
    if (!setting_.sink.read(hull.begin, {old, hull.length()}).ok()) return false;
  }
  ++setting_.tally.file_reads;
  ++setting_.tally.modified;
  setting_.tally.file_read_bytes += hull.length();
  std::uint64_t at = hull.begin;
  pattern::CoverageRuns runs(stretch, coverages);
  for (base::Extent run = runs.next(); !run.empty(); run = runs.next()) {
    std::memcpy(image + (at - stretch.begin), old + (at - hull.begin), run.begin - at);
    at = run.end;
  }
  return true;
}

void WriteJob::write_file(std::uint64_t offset, std::span<const std::byte> data) {
  const Timed timed(setting_.tally.file_ns);
  keep(setting_.sink.write(offset, data));
  ++setting_.tally.file_writes;
  setting_.tally.file_write_bytes += data.size();
}

bool WriteJob::pump() {
  if (!busy()) return false;
  const bool left = outbox_.sweep();
  const bool sent = send_next();
  const bool came = receive_some();
  return left || sent || came;
}

bool WriteJob::send_next() {
  if (sends_.empty() || outbox_.full() || !is_in(sends_.front(), kSendable)) return false;
  const Step step = sends_.front();
  sends_.pop_front();
  {
    const Timed timed(setting_.tally.message_ns);
    const std::vector<pattern::Coverage> coverages = areas(step.slot, step.stretch, step.index);
    send(steps_.speaker(step.owner, step.index), data_tag(step.index),
         pack_parcel(setting_.buffers, step.stretch, coverages, setting_.granule, image(step.slot)));
    clear(coverages, step.stretch);
  }
  free_slot(step.slot);
  return true;
}

bool WriteJob::receive_some() {
  bool found = false;
  for (std::size_t i = 0; i < std::min(arrivals_.size(), kPosted);) {
    Arrival& arrival = arrivals_[i];
    const base::Extent stretch = arrival.step.stretch;
    if (!arrival.letter.posted())
      arrival.letter =
          receive(arrival.from, data_tag(arrival.step.index), parcel_limit(stretch.length(), setting_.granule) + stretch.length());
    if (!arrival.letter.test() || !is_open(arrival.step)) {
      ++i;
      continue;
    }
    merge(arrival);
    arrivals_.erase(arrivals_.begin() + static_cast<std::ptrdiff_t>(i));
    found = true;
  }
  return found;
}

void WriteJob::merge(Arrival& arrival) {
  const Step step = arrival.step;
  {
    const Timed timed(setting_.tally.message_ns);
    Parcel parcel(arrival.letter.buffer().bytes(), step.stretch, setting_.granule);
    const std::byte* bytes = parcel.bytes();
    while (const std::optional<base::Extent> run = parcel.next()) {
      std::memcpy(image(step.slot) + (run->begin - step.stretch.begin), bytes, run->length());
      bytes += run->length();
      if (counts_coverage(step)) set_bits(my_area(step), step.stretch, *run);
    }
  }
  setting_.buffers.give(std::move(arrival.letter.buffer()));
  arrive(step);
}

}  // namespace

base::Status run_writes(const Setting& setting, const pattern::Access& access) { return WriteJob(setting, access).run(); }

}  // namespace pario::exchange
