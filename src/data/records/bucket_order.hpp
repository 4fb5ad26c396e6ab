// The second pass of a shuffle into buckets (`pario records shuffle --fused`), which is left to
// whoever loads the records.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/index.hpp"
#include "data/records/philox.hpp"

namespace pario::records {

/// An order of the records of a file with Index::bucketing: bucket by bucket, so that a few
/// megabytes are read at a time. All orders are equally likely. One thread at a time, for the
/// bucket that was asked for last is kept.
class BucketOrder {
 public:
  /// That of the shuffle: the records come as it would have written them.
  explicit BucketOrder(const Index& index);
  /// One for each seed and epoch: other turns of the buckets, another order within each.
  BucketOrder(const Index& index, std::uint64_t seed, std::uint64_t epoch);

  /// The record at `position` < count.
  std::uint64_t at(std::uint64_t position) const;
  /// Behind the last position of the bucket that `position` is in.
  std::uint64_t end_of(std::uint64_t position) const { return ends_[turn_of(position)]; }

 private:
  void take_stretches(std::span<const std::uint64_t> turns);
  std::uint64_t turn_of(std::uint64_t position) const;
  std::uint64_t begin_of(std::uint64_t turn) const { return turn == 0 ? 0 : ends_[turn - 1]; }
  std::vector<std::uint64_t> sorted(std::uint64_t turn) const;

  Index index_;
  ShuffleKeys keys_;
  std::vector<std::vector<base::Extent>> stretches_;  ///< records, by the turn of their bucket
  std::vector<std::uint64_t> ends_;                   ///< positions behind each turn
  mutable std::uint64_t held_;                        ///< the turn whose records these are
  mutable std::vector<std::uint64_t> records_;
};

}  // namespace pario::records
