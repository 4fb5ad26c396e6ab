#include "data/records/block_order.hpp"

#include <algorithm>

namespace pario::records {

BlockOrder::BlockOrder(Blocks blocks, std::uint64_t together, std::uint64_t seed,
                       std::uint64_t epoch)
    : blocks_(std::move(blocks)),
      together_(together),
      seed_(seed),
      epoch_(epoch),
      all_(blocks_.count(), seed, epoch, true) {
  const std::uint64_t count = blocks_.count();
  if (count == 0) return;
  if (blocks_.begins.empty()) {
    short_by_ = count * blocks_.length - blocks_.records;
    while (all_.at(short_slot_) != count - 1) ++short_slot_;
    return;
  }
  places_.push_back(0);
  for (std::uint64_t slot = 0; slot < count; ++slot) {
    const std::uint64_t block = all_.at(slot);
    places_.push_back(places_.back() + blocks_.begin(block + 1) - blocks_.begin(block));
  }
}

/// The position at which the block of `slot` begins.
std::uint64_t BlockOrder::place_of(std::uint64_t slot) const {
  if (!places_.empty()) return places_[slot];
  return std::min(slot * blocks_.length - (slot > short_slot_ ? short_by_ : 0), blocks_.records);
}

std::uint64_t BlockOrder::slot_of(std::uint64_t place) const {
  if (!places_.empty())
    return static_cast<std::uint64_t>(std::ranges::upper_bound(places_, place) - places_.begin()) -
           1;
  return (place + (place >= place_of(short_slot_ + 1) ? short_by_ : 0)) / blocks_.length;
}

base::Extent BlockOrder::slots_of_turn(std::uint64_t turn) const {
  return {turn * together_, std::min((turn + 1) * together_, blocks_.count())};
}

std::uint64_t BlockOrder::at(std::uint64_t position) const {
  const std::uint64_t turn = slot_of(position) / together_;
  const base::Extent slots = slots_of_turn(turn);
  const std::uint64_t begin = place_of(slots.begin), end = place_of(slots.end);
  const Permutation inner(end - begin, seed_, (turn + 1) << 32 | (epoch_ & 0xFFFFFFFF), false);
  const std::uint64_t place = begin + inner.at(position - begin), slot = slot_of(place);
  return blocks_.begin(all_.at(slot)) + place - place_of(slot);
}

BlockOrder::Turn BlockOrder::turn_of(std::uint64_t position) const {
  const base::Extent slots = slots_of_turn(slot_of(position) / together_);
  Turn turn{.positions = {place_of(slots.begin), place_of(slots.end)}};
  for (std::uint64_t slot = slots.begin; slot < slots.end; ++slot)
    turn.blocks.push_back(all_.at(slot));
  return turn;
}

}  // namespace pario::records
