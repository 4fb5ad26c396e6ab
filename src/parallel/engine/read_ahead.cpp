#include "parallel/engine/read_ahead.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "parallel/engine/engine.hpp"

namespace pario::engine {
namespace {

constexpr std::uint64_t kMostReads = 4096;  // of a series, before a window

/// True once a file of this process has windows, and the events since then.
std::atomic<bool> has_windows{false};
std::atomic<std::uint64_t> events{0};

}  // namespace

const std::size_t ReadAhead::kHeader = sizeof(Shared) + offsetof(Rank, bytes);

void note_event() {
  if (has_windows.load(std::memory_order_relaxed)) events.fetch_add(1);
}

ReadAhead::ReadAhead(std::byte* memory, file::File& file, int rank, int ranks,
                     std::uint64_t most_age_ns)
    : shared_(*reinterpret_cast<Shared*>(memory)),
      ranks_(reinterpret_cast<Rank*>(memory + sizeof(Shared)), static_cast<std::size_t>(ranks)),
      rank_(static_cast<std::size_t>(rank)),
      file_(file),
      most_age_(
          static_cast<std::uint64_t>(static_cast<double>(most_age_ns) / exchange::ns_per_tick())) {}

bool ReadAhead::is_fresh() const {
  return current_.changes == shared_.changes.load() && current_.events == events.load() &&
         base::ticks() - current_.read_at <= most_age_;
}

void ReadAhead::copy(base::Extent where, std::byte* to) {
  std::memcpy(to, current_.bytes + (where.begin - current_.extent.begin), where.length());
  last_ = where;
  ++served_;
}

/// A read that the current window does not serve.
bool ReadAhead::read_on(base::Extent where, std::byte* to, std::optional<std::uint64_t>& read) {
  const std::uint64_t now = events.load();
  if (now != events_) knows_changes_ = true;
  if (now != events_ || covers(where)) reads_ = window_ = 0;  // changes interrupt a series
  events_ = now;
  leave_window();
  const bool follows = continues_series(where);
  last_ = where;
  if (!follows) return false;
  const bool may_fill = reads_ >= needed_;
  if (may_fill) drop_known_changes();
  if (knows_changes_) return false;
  // The next reads come from the window of the last byte, if there is one.
  const base::Extent last{where.end - 1, where.end};
  if (!find_window(where) && !find_window(last) &&
      !(is_coming(last) ? await_window(last) : may_fill && fill_window(where, read)))
    return false;
  if (!covers(where)) return false;
  copy(where, to);
  return true;
}

/// Counts a read of a series: it begins behind the one before, and no further away than if all
/// ranks read pieces of this size in turn. True if it belongs to the series.
bool ReadAhead::continues_series(base::Extent where) {
  const bool follows =
      where.begin >= last_.end && where.begin - last_.end <= where.length() * (ranks_.size() - 1);
  reads_ = follows ? reads_ + 1 : 0;
  step_ = where.begin - last_.begin;
  if (!follows) window_ = 0;
  return follows;
}

void ReadAhead::leave_window() {
  current_ = {};
  ranks_[rank_].pin.store(0);
}

/// Drops the windows that may lack changes of which this process knows.
void ReadAhead::drop_known_changes() {
  if (!knows_changes_) return;
  has_windows = true;
  shared_.is_used.store(1);
  shared_.changes.fetch_add(1);
  knows_changes_ = false;
}

bool ReadAhead::find_window(base::Extent where) {
  for (std::size_t number = 0; number < ranks_.size() * kSlots; ++number)
    if (slot(number).end.load() >= where.end && slot(number).begin.load() <= where.begin &&
        enter_window(number, where))
      return true;
  return false;
}

/// True if another rank is reading a window with these bytes from the file.
bool ReadAhead::is_coming(base::Extent where) const {
  return std::ranges::any_of(ranks_, [&](const Rank& rank) {
    return rank.coming_end.load() >= where.end && rank.coming_begin.load() <= where.begin;
  });
}

/// Waits for such a window. False: that would take longer than to read the bytes alone.
bool ReadAhead::await_window(base::Extent where) {
  if (const std::uint64_t ns = spin_time_.next_ns(); ns != 0)
    spin_time_.add_outcome(comm::spin_until([&] { return !is_coming(where); }, ns));
  return find_window(where);
}

/// Pins a window, and then looks whether it is valid: its rank first makes it invalid, and then
/// looks for pins.
bool ReadAhead::enter_window(std::size_t number, base::Extent where) {
  ranks_[rank_].pin.store(number + 1);
  const Slot& window = slot(number);
  current_ = {.extent = {window.begin.load(), window.end.load()},
              .bytes = bytes_of(number),
              .changes = window.changes.load(),
              .events = events_,
              .read_at = window.read_at.load()};
  if (current_.extent.end != 0 && covers(where) && is_fresh()) {
    window_ = current_.extent.length();
    return true;
  }
  leave_window();
  return false;
}

bool ReadAhead::fill_window(base::Extent where, std::optional<std::uint64_t>& read) {
  if (!is_worth_a_window()) return false;
  std::size_t number = 0;
  Slot* const window = find_free_slot(number);
  if (window == nullptr) return false;
  const base::Extent extent = choose_window(where);
  ranks_[rank_].coming_begin.store(extent.begin);
  ranks_[rank_].coming_end.store(extent.end);
  window->changes.store(shared_.changes.load());
  window->read_at.store(base::ticks());
  const base::Result<std::uint64_t> moved =
      file_.read(extent.begin, {bytes_of(number), extent.length()});
  if (moved) {
    window->begin.store(extent.begin);
    window->end.store(extent.begin + *moved);
  }
  ranks_[rank_].coming_end.store(0);
  if (!moved) return false;  // the read of the piece itself returns the error
  read = *moved;
  return enter_window(number, where);
}

/// Whole pages, because the page cache reads no less.
base::Extent ReadAhead::choose_window(base::Extent where) const {
  const std::uint64_t begin = base::round_down(where.begin, base::kPage);
  const std::uint64_t needed = where.begin - begin + std::max(step_ * kFirstServed, where.length());
  const std::uint64_t size = base::round_up(std::max(needed, window_ * kGrowth), base::kPage);
  return base::Extent::at(begin, std::min(size, kWindow));
}

/// Lengthens the series that windows need if the last one has served few reads.
bool ReadAhead::is_worth_a_window() {
  const bool served = served_ >= kLeastServed;
  served_ = served ? 0 : kLeastServed;
  needed_ = served ? std::max(needed_ / 2, kFirstReads) : std::min(needed_ * 2, kMostReads);
  if (!served) reads_ = window_ = 0;
  return served;
}

/// Returns a window of this rank that no rank copies from, made invalid; null: there is none.
ReadAhead::Slot* ReadAhead::find_free_slot(std::size_t& number) {
  for (number = rank_ * kSlots; number < (rank_ + 1) * kSlots; ++number) {
    if (is_pinned(number)) continue;
    slot(number).end.store(0);
    if (!is_pinned(number)) return &slot(number);
  }
  return nullptr;
}

bool ReadAhead::is_pinned(std::size_t number) const {
  return std::ranges::any_of(ranks_,
                             [&](const Rank& rank) { return rank.pin.load() == number + 1; });
}

}  // namespace pario::engine
