// Random order of blocks of neighbouring records, and of the records within groups of blocks, so
// that reads and decoded groups stay large.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/permutation.hpp"

namespace pario::records {

/// The division of records into blocks: of equal length but for the last one, or by `begins`, the
/// first record of each block and the end.
struct Blocks {
  std::uint64_t records = 0, length = 1;
  std::vector<std::uint64_t> begins = {};

  std::uint64_t count() const {
    return begins.empty() ? (records + length - 1) / length : begins.size() - 1;
  }
  std::uint64_t begin(std::uint64_t block) const {
    return begins.empty() ? block * length : begins[block];
  }
};

/// Blocks in random order, each in a slot. A turn is `together` slots, whose records are mixed.
class BlockOrder {
 public:
  BlockOrder(Blocks blocks, std::uint64_t together, std::uint64_t seed, std::uint64_t epoch);

  /// The record at `position` < records.
  std::uint64_t at(std::uint64_t position) const;

  struct Turn {
    base::Extent positions;
    std::vector<std::uint64_t> blocks = {};
  };
  Turn turn_of(std::uint64_t position) const;

 private:
  base::Extent slots_of_turn(std::uint64_t turn) const;
  std::uint64_t place_of(std::uint64_t slot) const;
  std::uint64_t slot_of(std::uint64_t place) const;

  Blocks blocks_;
  std::uint64_t together_, seed_, epoch_;
  Permutation all_;               ///< the block in a slot
  std::uint64_t short_slot_ = 0;  ///< with blocks of one length: the slot of the last one,
  std::uint64_t short_by_ = 0;    ///< and the number of records that it lacks
  std::vector<std::uint64_t>
      places_;  ///< with other blocks: the position of each slot, and the end
};

}  // namespace pario::records
