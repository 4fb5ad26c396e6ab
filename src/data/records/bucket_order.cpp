#include "data/records/bucket_order.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "data/records/permutation.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

Bucketing bucketing_of(const Index& index) { return index.bucketing().value_or(Bucketing{}); }

/// The turn of each bucket: its number.
std::vector<std::uint64_t> in_order(std::uint64_t buckets) {
  std::vector<std::uint64_t> turns(buckets);
  std::iota(turns.begin(), turns.end(), std::uint64_t{0});
  return turns;
}

std::vector<std::uint64_t> shuffle_turns(std::uint64_t buckets, std::uint64_t seed,
                                         std::uint64_t epoch) {
  const Permutation permutation(buckets, seed, epoch, true);
  std::vector<std::uint64_t> turns(buckets);
  for (std::uint64_t bucket = 0; bucket < buckets; ++bucket) turns[bucket] = permutation.at(bucket);
  return turns;
}

}  // namespace

BucketOrder::BucketOrder(const Index& index)
    : index_(index), keys_(bucketing_of(index).seed), held_(kNone) {
  take_runs(in_order(bucketing_of(index).buckets));
}

BucketOrder::BucketOrder(const Index& index, std::uint64_t seed, std::uint64_t epoch)
    : index_(index), keys_(seed, 64, static_cast<std::uint32_t>(epoch) + 1), held_(kNone) {
  take_runs(shuffle_turns(bucketing_of(index).buckets, seed, epoch));
}

void BucketOrder::take_runs(std::span<const std::uint64_t> turns) {
  runs_.resize(turns.size());
  ends_.resize(turns.size());
  for (std::uint64_t i = 0; i < index_.runs(); ++i) {
    const BucketRun run = index_.run(i);
    const std::uint64_t behind = i + 1 < index_.runs() ? index_.run(i + 1).first : index_.count(),
                        turn = turns[run.bucket];
    runs_[turn].push_back({run.first, behind});
    ends_[turn] += behind - run.first;
  }
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
}

std::uint64_t BucketOrder::turn_of(std::uint64_t position) const {
  return static_cast<std::uint64_t>(std::ranges::upper_bound(ends_, position) - ends_.begin());
}

std::uint64_t BucketOrder::at(std::uint64_t position) const {
  const bool held = held_ != kNone && position >= begin_of(held_) && position < ends_[held_];
  if (!held) {
    held_ = turn_of(position);
    records_ = sort_bucket(held_);
  }
  return records_[position - begin_of(held_)];
}

/// Sorts the records of a bucket by key; those of equal keys by their offset in the input.
std::vector<std::uint64_t> BucketOrder::sort_bucket(std::uint64_t turn) const {
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> order;
  order.reserve(ends_[turn] - begin_of(turn));
  for (const base::Extent& run : runs_[turn])
    for (std::uint64_t record = run.begin; record < run.end; ++record) {
      const std::uint64_t identity = index_.identity(record);
      order.emplace_back(keys_.of(identity), identity, record);
    }
  std::ranges::sort(order);
  std::vector<std::uint64_t> records;
  records.reserve(order.size());
  for (const auto& [key, identity, record] : order) records.push_back(record);
  return records;
}

}  // namespace pario::records
