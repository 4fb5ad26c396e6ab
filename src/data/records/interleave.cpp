#include "data/records/interleave.hpp"

#include <algorithm>
#include <numeric>

namespace pario::records {

Interleaving::Interleaving(std::span<const std::uint64_t> counts, std::uint64_t cycle,
                           std::uint64_t block)
    : block_(block) {
  const std::uint64_t whole = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  std::vector<Seat> seats(std::min<std::uint64_t>(cycle, counts.size()));
  Unopened files{counts};
  while (position_ < whole) {
    if (files.counts.empty() || std::ranges::all_of(seats, &Seat::open)) add_whole_rounds(seats);
    for (Seat& seat : seats) add_turn(seat, files);
  }
}

/// Adds all whole rounds before one of the files ends.
void Interleaving::add_whole_rounds(std::span<Seat> seats) {
  std::uint64_t rounds = ~std::uint64_t{0};
  std::size_t files = 0;
  for (const Seat& seat : seats) {
    if (!seat.open) continue;
    rounds = std::min(rounds, (seat.end - seat.next) / block_);
    ++files;
  }
  if (files == 0 || rounds == 0) return;
  for (Seat& seat : seats) {
    if (!seat.open) continue;
    firsts_.push_back(seat.next);
    seat.next += rounds * block_;
  }
  add(rounds * block_ * files, files);
}

void Interleaving::add_turn(Seat& seat, Unopened& files) {
  if (!seat.open) {
    if (files.counts.empty()) return;
    seat = {files.begin, files.begin + files.counts.front(), true};
    files = {files.counts.subspan(1), seat.end};
  }
  const std::uint64_t records = std::min(block_, seat.end - seat.next);
  seat.open = records == block_;
  if (records == 0) return;
  firsts_.push_back(seat.next);
  seat.next += records;
  add(records, 1);
}

/// Adds an interval of the last `files` of firsts_.
void Interleaving::add(std::uint64_t records, std::size_t files) {
  intervals_.push_back({position_, firsts_.size() - files, files});
  position_ += records;
}

std::uint64_t Interleaving::at(std::uint64_t position) const {
  const Interval& interval =
      *(std::ranges::upper_bound(intervals_, position, {}, &Interval::position) - 1);
  const std::uint64_t within = position - interval.position;
  if (interval.files == 1) return firsts_[interval.first] + within;
  const std::uint64_t turn = within / block_, round = turn / interval.files;
  return firsts_[interval.first + turn % interval.files] + round * block_ + within % block_;
}

}  // namespace pario::records
