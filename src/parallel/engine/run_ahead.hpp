// Collective calls without exchange, in which the ranks of a node do not wait for each other.
//
// After calls in which each rank moved one run (or nothing) and nothing was exchanged, the ranks
// agree in a meeting that the next calls, a series, are direct: each rank accesses the file itself.
// In a series ranks do not meet. They return to meetings at its end, with a call of the other
// direction unless that has had series, too, and with any call that moves no data.
//
// Ranks may thus be up to a series apart. The file must nevertheless be the same as if all ranks
// made one call after the other. Therefore each rank publishes the extent of its call before it
// writes, and
// - waits for ranks that are writing an overlapping extent of an earlier call;
// - leaves out the bytes that other ranks have published in later calls;
// - turns to the other direction only when all ranks have finished their calls before the turn.
// Of two such ranks at least one sees the other, because each first publishes and then looks. Only
// runs are exact extents; a rank with another access waits until no rank is in an earlier call. If
// all ranks have such an access in the same call, they end the series and meet.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/base.hpp"
#include "core/comm/comm.hpp"
#include "core/comm/spin_time.hpp"
#include "core/pattern/pattern.hpp"
#include "parallel/engine/series.hpp"
#include "parallel/plan/plan.hpp"

namespace pario::engine {

/// Returns the parts of `whole` outside of `except`, ascending.
std::vector<base::Extent> parts_outside(base::Extent whole, std::vector<base::Extent> except);

/// The order of one sequence of collective calls, and one rank's place in it. Calls have the
/// numbers of CollectiveCalls, which are the same on all ranks. One thread of a rank uses it at a
/// time.
class RunAhead {
 public:
  /// Bytes of zeroed memory that `ranks` ranks of a node share.
  static std::size_t memory_size(int ranks) {
    return sizeof(Sleepers) + sizeof(Line) * static_cast<std::size_t>(ranks);
  }
  /// `memory` and `comm`, whose ranks are all on one node, must outlive the object.
  RunAhead(std::byte* memory, comm::Comm& comm)
      : sleepers_(*reinterpret_cast<Sleepers*>(memory)),
        lines_(reinterpret_cast<Line*>(memory + sizeof(Sleepers)),
               static_cast<std::size_t>(comm.size())),
        own_(lines_[static_cast<std::size_t>(comm.rank())]),
        seen_(lines_.size()) {}

  /// The calls that belong to a series.
  Series& series() { return series_; }
  /// Series::begin(), after a meeting of a data access.
  void begin_series(plan::Direction direction, std::span<const pattern::Summary> ranks,
                    const pattern::Summary& mine, bool direct) {
    series_.begin(direction, ranks, mine, direct);
    turned_after_ = 0;
  }
  /// This rank is about to wait for all others. Each rank calls it as often.
  void enter_meeting() {
    own_.meetings.store(own_.meetings.load(std::memory_order_relaxed) + 1);
    wake_sleepers();
  }
  /// Makes a call in which no rank moves bytes, before the first call of the series in the other
  /// direction. Then must_wait() is true until all ranks have finished their calls before it.
  void turn(std::uint64_t number, plan::Direction direction) {
    series_.turn(direction);
    turned_after_ = own_.begun.load(std::memory_order_relaxed);
    pass(number);
  }

  /// Begins this rank's call: one of a series, or that of the meeting before. Ends with finish().
  void begin(std::uint64_t number, const pattern::Summary& mine) {
    const bool writes = series_.direction() == plan::Direction::write && mine.bytes > 0;
    publish(number, writes ? mine.span : base::Extent{}, !series_.is_usual(mine));
  }
  /// Begins a call of the series in which this rank moves one run, as Series::expects_run() says.
  void begin_run(std::uint64_t number, base::Extent run) { publish(number, run, false); }
  /// begin_run() of a read. No other rank looks at its extent, except after a turn, which ranks may
  /// not have reached: only then it is published (as empty), which costs a barrier of memory.
  void begin_read(std::uint64_t number) {
    if (turned_after_ != 0) return publish(number, {}, false);
    differs_ = false;
    entry_of_own(number).differs.store(0, std::memory_order_relaxed);
    own_.begun.store(number, std::memory_order_release);
  }
  void finish_read(std::uint64_t number) {
    own_.finished.store(number, std::memory_order_release);
    wake_sleepers();
  }
  /// Makes a call of a series in which this rank moves nothing, because it cannot take part.
  void pass(std::uint64_t number) {
    publish(number, {}, false);
    finish(number);
  }
  /// False if this rank's access differs from those that began the series: see all_differ().
  bool is_usual() const { return !differs_; }
  /// Waits until all ranks have begun call `number`, which this rank has begun. True on all ranks
  /// if the accesses of all of them differ, and on none otherwise.
  base::Result<bool> all_differ(std::uint64_t number, const comm::Patience& patience) const;
  /// True if a rank may be writing bytes of `extent` in a call before `number`, or has not finished
  /// the calls before the last turn.
  bool must_wait(std::uint64_t number, base::Extent extent);
  /// Waits until must_wait() is false.
  base::Status wait_for_earlier(std::uint64_t number, base::Extent extent,
                                const comm::Patience& patience);
  /// Returns the overlapping extents of later calls that other ranks have published and have not to
  /// wait for this call, which must not wait itself.
  std::vector<base::Extent> find_later(std::uint64_t number, base::Extent extent);
  /// True if another rank makes an overlapping call, earlier or later.
  bool overlaps_others(std::uint64_t number, base::Extent extent) {
    return must_wait(number, extent) || !find_later(number, extent).empty();
  }
  void finish(std::uint64_t number) {
    own_.finished.store(number);
    wake_sleepers();
  }

 private:
  using Number = std::atomic<std::uint64_t>;
  struct Entry {
    Number begin, end, differs;
  };
  /// The ranks that sleep until all have finished a call; the last of these wakes them. A wake-up
  /// may be lost: they sleep briefly.
  struct alignas(64) Sleepers {
    base::FutexWord changes;
    std::atomic<std::uint32_t> count;
    Number call;
  };
  /// The published calls of one rank; only that rank writes it.
  struct alignas(64) Line {
    Number begun, finished;                      ///< numbers of its latest calls
    Number meetings;                             ///< that it has entered
    std::array<Entry, Series::kMost + 1> calls;  ///< by number
  };
  /// The later calls of another rank that this rank has looked at, since it was in the latest call
  /// of the other one or ahead.
  struct Seen {
    std::uint64_t until = 0;  ///< number of the latest of them
    base::Extent hull = {};
    bool ascending = true;  ///< each extent begins behind those before it
  };

  static const Entry& entry(const Line& line, std::uint64_t number) {
    return line.calls[number % line.calls.size()];
  }
  static base::Extent extent_of(const Line& line, std::uint64_t number) {
    const Entry& call = entry(line, number);
    return {call.begin.load(std::memory_order_relaxed), call.end.load(std::memory_order_relaxed)};
  }
  Entry& entry_of_own(std::uint64_t number) { return own_.calls[number % own_.calls.size()]; }
  /// True if the rank is in a meeting that waits for this rank, and thus in no call: also if the
  /// program makes different calls on its ranks.
  bool awaits_me(const Line& line) const {
    return line.meetings.load() > own_.meetings.load(std::memory_order_relaxed);
  }
  void wake_sleepers() {
    if (sleepers_.count.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    if (!have_finished(sleepers_.call.load(std::memory_order_relaxed))) return;
    sleepers_.changes.fetch_add(1);
    base::futex_wake(sleepers_.changes);
  }
  bool have_finished(std::uint64_t number) const;
  void publish(std::uint64_t number, base::Extent extent, bool differs);
  bool has_turned();
  const Seen& look_at(std::size_t rank, std::uint64_t number, std::uint64_t begun);
  bool is_apart(std::size_t rank, std::uint64_t number, std::uint64_t begun, base::Extent extent);
  static bool is_writing(const Line& line, std::uint64_t before, base::Extent extent);

  Sleepers& sleepers_;
  std::span<Line> lines_;
  Line& own_;
  std::vector<Seen> seen_;  // by rank
  Series series_;
  std::uint64_t turned_after_ = 0;  // call before the last turn, for which not all ranks have come
  comm::SpinTime spin_time_;
  bool differs_ = false;
};

}  // namespace pario::engine
