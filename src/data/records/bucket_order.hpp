// The second pass of a shuffle into buckets (`pario records shuffle --fused`), made by the loader.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/index.hpp"
#include "data/records/philox.hpp"

namespace pario::records {

/// An order of the records of a file with Index::bucketing: bucket by bucket, so that a few
/// megabytes are read at a time. All orders are equally likely. One thread at a time, because the
/// latest bucket is cached.
class BucketOrder {
 public:
  /// The order in which the shuffle would have written the records.
  explicit BucketOrder(const Index& index);
  /// The order of a seed and an epoch: random turns of the buckets, and a random order within each.
  BucketOrder(const Index& index, std::uint64_t seed, std::uint64_t epoch);

  /// The record at `position` < count.
  std::uint64_t at(std::uint64_t position) const;
  /// The position after the last one of the bucket that contains `position`.
  std::uint64_t end_of(std::uint64_t position) const { return ends_[turn_of(position)]; }

 private:
  void take_runs(std::span<const std::uint64_t> turns);
  std::uint64_t turn_of(std::uint64_t position) const;
  std::uint64_t begin_of(std::uint64_t turn) const { return turn == 0 ? 0 : ends_[turn - 1]; }
  std::vector<std::uint64_t> sort_bucket(std::uint64_t turn) const;

  Index index_;
  ShuffleKeys keys_;
  std::vector<std::vector<base::Extent>> runs_;  ///< records, by the turn of their bucket
  std::vector<std::uint64_t> ends_;              ///< the position after each turn
  mutable std::uint64_t held_;                   ///< the turn of `records_`
  mutable std::vector<std::uint64_t> records_;
};

}  // namespace pario::records
