// The order in which records are loaded: a function of seed, epoch and position alone, so that all
// ranks and workers agree on it, and loading can resume at any position.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/records/block_order.hpp"
#include "data/records/bucket_order.hpp"
#include "data/records/interleave.hpp"
#include "data/records/permutation.hpp"

namespace pario::records {

enum class Ordering : std::uint8_t {
  as_they_lie,
  shuffled,
  blocks,       ///< blocks are shuffled, and records within groups of blocks: reads stay long
  interleaved,  ///< the files of a group take turns, block by block (Interleaving)
};

struct OrderRequest {
  Ordering ordering = Ordering::as_they_lie;
  std::uint64_t count = 0, seed = 0, epoch = 0;
  std::uint64_t block = 1,
                group = 1;  ///< records of a block; blocks of a group, or files that take turns
  std::vector<std::uint64_t> files = {};   ///< records of each file; for interleaved
  std::vector<std::uint64_t> begins = {};  ///< of blocks that differ in length, and the end
  std::optional<Index> bucketed = {};  ///< of a file whose records are in buckets; the order of the
                                       ///< file is then that of its shuffle
};

/// An order of records. One thread at a time.
class Order {
 public:
  explicit Order(const OrderRequest& request);
  /// The record at `position` < count.
  std::uint64_t at(std::uint64_t position) const;
  /// The end of the positions that are read together with `position`, because they are in its
  /// bucket; `position` itself without buckets.
  std::uint64_t bucket_end(std::uint64_t position) const {
    return buckets_ ? buckets_->end_of(position) : position;
  }
  /// The blocks that are needed together with that of `position`; none in other orders.
  BlockOrder::Turn turn_of(std::uint64_t position) const {
    return blocks_ ? blocks_->turn_of(position) : BlockOrder::Turn{};
  }

 private:
  OrderRequest request_;
  Permutation all_;
  Interleaving interleaving_;
  std::optional<BucketOrder> buckets_;
  std::optional<BlockOrder> blocks_;
};

/// Treatment of the last step's records if they do not fill a batch of every rank.
enum class Remainder : std::uint8_t {
  exact,         ///< each rank gets a fair part, each record once: batches differ by one record
  pad,           ///< all ranks get equally many: neighbouring ranks share some records
  drop,          ///< all ranks get equally many: fewer records than there are ranks are left out
  full_batches,  ///< all of them are left out
};

/// The positions of an epoch that one rank reads, batch by batch. Each step takes a batch for every
/// rank, beginning where the step before it ended.
struct Schedule {
  std::uint64_t count = 0;  ///< records of the epoch
  std::uint64_t begin = 0;  ///< positions read before
  std::uint64_t batch = 1, ranks = 1, rank = 0;
  /// Workers share a rank's steps: this one takes every `stride`th step from number `offset` on.
  std::uint64_t stride = 1, offset = 0;
  Remainder remainder = Remainder::exact;

  struct Step {
    std::uint64_t first, last;  ///< positions [first, last); with Remainder::exact possibly none
    std::uint64_t end;          ///< positions that all ranks together have read after this step
  };
  std::uint64_t steps() const;
  /// `number` < steps().
  Step step(std::uint64_t number) const;

 private:
  /// True if there is a step for `left` records, too few for batches of all ranks.
  bool has_last_step(std::uint64_t left) const;
};

}  // namespace pario::records
