#include "parallel/engine/run_ahead.hpp"

#include <algorithm>

namespace pario::engine {
namespace {

bool overlap(base::Extent a, base::Extent b) { return !base::intersection(a, b).empty(); }

}  // namespace

std::vector<base::Extent> parts_outside(base::Extent whole, std::vector<base::Extent> except) {
  std::ranges::sort(except, {}, &base::Extent::begin);
  std::vector<base::Extent> parts;
  std::uint64_t begin = whole.begin;
  for (const base::Extent& one : except) {
    if (one.empty()) continue;
    if (one.begin >= whole.end) break;
    if (one.begin > begin) parts.push_back({begin, one.begin});
    begin = std::max(begin, one.end);
  }
  if (begin < whole.end) parts.push_back({begin, whole.end});
  return parts;
}

void RunAhead::publish(std::uint64_t number, base::Extent extent, bool differs) {
  differs_ = differs;
  Entry& call = entry_of_own(number);
  call.begin.store(extent.begin, std::memory_order_relaxed);
  call.end.store(extent.end, std::memory_order_relaxed);
  call.differs.store(differs ? 1 : 0, std::memory_order_relaxed);
  own_.begun.store(number);
}

base::Result<bool> RunAhead::all_differ(std::uint64_t number,
                                        const comm::Patience& patience) const {
  const auto have_begun = [&] {
    return std::ranges::all_of(
        lines_, [&](const Line& line) { return line.begun.load() >= number || awaits_me(line); });
  };
  if (const base::Status status = comm::poll_until(have_begun, patience); !status)
    return status.error();
  return std::ranges::all_of(lines_, [&](const Line& line) {
    return line.begun.load() >= number &&
           entry(line, number).differs.load(std::memory_order_relaxed) != 0;
  });
}

/// True if the rank is in a call before `before` and may write bytes of `extent`.
bool RunAhead::is_writing(const Line& line, std::uint64_t before, base::Extent extent) {
  const std::uint64_t begun = line.begun.load();
  if (begun >= before || line.finished.load() >= begun) return false;
  const base::Extent other = extent_of(line, begun);
  // If the rank has begun another call meanwhile, that may not be the extent of call `begun`.
  return line.begun.load() != begun || overlap(other, extent);
}

/// True if all ranks have finished a call, or are in a meeting that waits for this rank.
bool RunAhead::have_finished(std::uint64_t number) const {
  return std::ranges::all_of(
      lines_, [&](const Line& line) { return line.finished.load() >= number || awaits_me(line); });
}

/// True if all ranks have finished the calls before the last turn of this rank.
bool RunAhead::has_turned() {
  if (turned_after_ != 0 && have_finished(turned_after_)) turned_after_ = 0;
  return turned_after_ == 0;
}

bool RunAhead::must_wait(std::uint64_t number, base::Extent extent) {
  if (!has_turned()) return true;
  return !extent.empty() && std::ranges::any_of(lines_, [&](const Line& line) {
    return &line != &own_ && is_writing(line, number, extent);
  });
}

base::Status RunAhead::wait_for_earlier(std::uint64_t number, base::Extent extent,
                                        const comm::Patience& patience) {
  const auto done = [&] { return !must_wait(number, extent); };
  if (const std::uint64_t ns = spin_time_.next_ns(); ns != 0) {
    const bool ended = comm::spin_until(done, ns);
    spin_time_.add_outcome(ended);
    if (ended) return {};
  }
  sleepers_.call.store(turned_after_);
  sleepers_.count.fetch_add(1);
  const base::Status status = comm::wait_until(sleepers_.changes, done, patience);
  sleepers_.count.fetch_sub(1);
  return status;
}

const RunAhead::Seen& RunAhead::look_at(std::size_t rank, std::uint64_t number,
                                        std::uint64_t begun) {
  Seen& seen = seen_[rank];
  if (seen.until <= number) seen = {.until = number};
  for (; seen.until < begun; ++seen.until) {
    const Entry& call = entry(lines_[rank], seen.until + 1);
    const base::Extent extent = extent_of(lines_[rank], seen.until + 1);
    if (call.differs.load(std::memory_order_relaxed) != 0 || extent.empty()) continue;
    if (extent.begin < seen.hull.end) seen.ascending = false;
    seen.hull = base::hull(seen.hull, extent);
  }
  return seen;
}

/// True if no call of a rank after `number`, until `begun`, overlaps `extent`; false also means
/// "not known". Looks at few calls: those that have begun since this rank's last call.
bool RunAhead::is_apart(std::size_t rank, std::uint64_t number, std::uint64_t begun,
                        base::Extent extent) {
  if (begun <= number) return true;
  const Seen& seen = look_at(rank, number, begun);
  if (!overlap(seen.hull, extent)) return true;
  const base::Extent next = extent_of(lines_[rank], number + 1);
  const bool is_exact = entry(lines_[rank], number + 1).differs.load() == 0 && !next.empty();
  return seen.ascending && is_exact && next.begin >= extent.end;
}

std::vector<base::Extent> RunAhead::find_later(std::uint64_t number, base::Extent extent) {
  std::vector<base::Extent> later;
  if (extent.empty()) return later;
  for (std::size_t rank = 0; rank < lines_.size(); ++rank) {
    const Line& line = lines_[rank];
    if (&line == &own_) continue;
    const std::uint64_t begun = line.begun.load();
    if (is_apart(rank, number, begun, extent)) continue;
    for (std::uint64_t call = number + 1; call <= begun; ++call)
      if (entry(line, call).differs.load(std::memory_order_relaxed) == 0 &&
          overlap(extent_of(line, call), extent))
        later.push_back(extent_of(line, call));
  }
  return later;
}

}  // namespace pario::engine
