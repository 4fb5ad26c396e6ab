#include "records/order.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "records/philox.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kLargestTable = 1 << 20;  // records, 4 bytes each
constexpr unsigned kRounds = 8;
constexpr std::uint32_t kTables = 1, kNetworks = 2;  // keep their random numbers apart

std::array<std::uint32_t, 2> key_of(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

/// Evenly in [0, bound): Lemire, Fast random integer generation in an interval, 2019.
std::uint64_t below(std::uint64_t bound, std::uint32_t which, std::uint32_t stream, std::uint64_t seed) {
  for (std::uint32_t attempt = 0;; ++attempt) {
    const auto words = philox({which, attempt, stream, kTables}, key_of(seed));
    const auto product = static_cast<unsigned __int128>(std::uint64_t{words[0]} << 32 | words[1]) * bound;
    if (static_cast<std::uint64_t>(product) >= (0 - bound) % bound) return static_cast<std::uint64_t>(product >> 64);
  }
}

}  // namespace

Permutation::Permutation(std::uint64_t count, std::uint64_t seed, std::uint64_t stream, bool table)
    : count_(count), seed_(seed), stream_(stream) {
  const auto bits = static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(count, 2) - 1));
  left_ = bits / 2;
  right_ = bits - left_;
  if (!table || count > kLargestTable) return;
  table_.resize(count);
  std::iota(table_.begin(), table_.end(), 0U);
  for (std::uint64_t i = count; i > 1; --i)
    std::swap(table_[i - 1], table_[below(i, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(stream), seed)]);
}

std::uint64_t Permutation::at(std::uint64_t position) const {
  if (!table_.empty()) return table_[position];
  do position = encipher(position);
  while (position >= count_);
  return position;
}

std::uint64_t Permutation::encipher(std::uint64_t value) const {
  const std::uint64_t left_mask = (std::uint64_t{1} << left_) - 1, right_mask = (std::uint64_t{1} << right_) - 1;
  std::uint64_t left = value >> right_, right = value & right_mask;
  const auto mixed = [&](std::uint64_t half, std::uint32_t round) -> std::uint64_t {
    const std::uint32_t apart = static_cast<std::uint32_t>(stream_ >> 32) << 2 | kNetworks;
    return philox({static_cast<std::uint32_t>(half), round, static_cast<std::uint32_t>(stream_), apart}, key_of(seed_))[0];
  };
  for (std::uint32_t round = 0; round < kRounds; round += 2) {
    left ^= mixed(right, round) & left_mask;
    right ^= mixed(left, round + 1) & right_mask;
  }
  return left << right_ | right;
}

namespace {

std::uint64_t blocks_of(const OrderRequest& request) { return (request.count + request.block - 1) / request.block; }

std::optional<BucketOrder> order_of_buckets(const OrderRequest& request) {
  if (request.bucketed && request.ordering == Ordering::as_they_lie) return BucketOrder(*request.bucketed);
  if (request.bucketed && request.ordering == Ordering::shuffled) return BucketOrder(*request.bucketed, request.seed, request.epoch);
  return {};
}

std::uint64_t shuffled_things(const OrderRequest& request) {
  if (request.ordering == Ordering::shuffled && request.bucketed) return 0;
  if (request.ordering == Ordering::shuffled) return request.count;
  return request.ordering == Ordering::blocks ? blocks_of(request) : 0;
}

std::span<const std::uint64_t> files_that_take_turns(const OrderRequest& request) {
  return request.ordering == Ordering::interleaved ? std::span(request.files) : std::span<const std::uint64_t>{};
}

}  // namespace

Order::Order(const OrderRequest& request)
    : request_(request),
      all_(shuffled_things(request), request.seed, request.epoch, true),
      interleaving_(files_that_take_turns(request), request.group, request.block),
      buckets_(order_of_buckets(request)) {
  if (request.ordering != Ordering::blocks || request.count == 0) return;
  const std::uint64_t last = blocks_of(request) - 1;
  short_length_ = request.count - last * request.block;
  while (all_.at(short_slot_) != last) ++short_slot_;
}

std::uint64_t Order::at(std::uint64_t position) const {
  if (buckets_) return buckets_->at(position);
  switch (request_.ordering) {
    case Ordering::shuffled:
      return all_.at(position);
    case Ordering::blocks:
      return in_blocks(position);
    case Ordering::interleaved:
      return interleaving_.at(position);
    default:
      return position;
  }
}

/// Where the blocks from `slot` on begin.
std::uint64_t Order::place_of(std::uint64_t slot) const {
  return std::min(slot * request_.block - (slot > short_slot_ ? request_.block - short_length_ : 0), request_.count);
}

std::uint64_t Order::in_blocks(std::uint64_t position) const {
  const auto slot_of = [&](std::uint64_t place) {
    const bool behind = place >= place_of(short_slot_ + 1);
    return (place + (behind ? request_.block - short_length_ : 0)) / request_.block;
  };
  const std::uint64_t group = slot_of(position) / request_.group, first = group * request_.group;
  const std::uint64_t begin = place_of(first), end = place_of(std::min(first + request_.group, blocks_of(request_)));
  const Permutation inner(end - begin, request_.seed, (group + 1) << 32 | (request_.epoch & 0xFFFFFFFF), false);
  const std::uint64_t place = begin + inner.at(position - begin), slot = slot_of(place);
  return all_.at(slot) * request_.block + place - place_of(slot);
}

std::uint64_t Schedule::steps() const {
  const std::uint64_t all = batch * ranks, left = count - std::min(begin, count);
  const std::uint64_t steps = only_full ? left / all : (left + all - 1) / all;
  return steps > offset ? (steps - offset + stride - 1) / stride : 0;
}

Schedule::Step Schedule::step(std::uint64_t number) const {
  const std::uint64_t all = batch * ranks, start = begin + (offset + number * stride) * all;
  const std::uint64_t taken = std::min(all, count - start);
  if (taken == all) return {start + rank * batch, start + (rank + 1) * batch, start + all};
  return {start + taken * rank / ranks, start + taken * (rank + 1) / ranks, start + taken};
}

}  // namespace pario::records
