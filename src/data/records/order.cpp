#include "data/records/order.hpp"

#include <algorithm>

namespace pario::records {
namespace {

std::optional<BucketOrder> order_of_buckets(const OrderRequest& request) {
  if (request.bucketed && request.ordering == Ordering::as_they_lie)
    return BucketOrder(*request.bucketed);
  if (request.bucketed && request.ordering == Ordering::shuffled)
    return BucketOrder(*request.bucketed, request.seed, request.epoch);
  return {};
}

std::uint64_t shuffled_records(const OrderRequest& request) {
  return request.ordering == Ordering::shuffled && !request.bucketed ? request.count : 0;
}

std::optional<BlockOrder> order_of_blocks(const OrderRequest& request) {
  if (request.ordering != Ordering::blocks) return {};
  return BlockOrder({request.count, request.block, request.begins}, request.group, request.seed,
                    request.epoch);
}

std::span<const std::uint64_t> files_that_take_turns(const OrderRequest& request) {
  return request.ordering == Ordering::interleaved ? std::span(request.files)
                                                   : std::span<const std::uint64_t>{};
}

/// `total` * `number` / `parts`, rounded down, where the product may exceed 64 bits.
std::uint64_t scale(std::uint64_t total, std::uint64_t number, std::uint64_t parts) {
  return total / parts * number + total % parts * number / parts;
}

struct Range {
  std::uint64_t first, last;
};

/// The part of a step with `taken` records that a rank reads. Padding makes the ranks' ranges equal
/// in length and lets them overlap evenly, so that no other records must be read.
Range rank_share(std::uint64_t taken, const Schedule& schedule) {
  const std::uint64_t ranks = schedule.ranks, rank = schedule.rank;
  if (schedule.remainder == Remainder::pad && ranks > 1) {
    const std::uint64_t each = taken / ranks + (taken % ranks != 0 ? 1 : 0);
    const std::uint64_t first = scale(taken - each, rank, ranks - 1);
    return {first, first + each};
  }
  if (schedule.remainder == Remainder::drop)
    return {taken / ranks * rank, taken / ranks * (rank + 1)};
  return {scale(taken, rank, ranks), scale(taken, rank + 1, ranks)};
}

}  // namespace

Order::Order(const OrderRequest& request)
    : request_(request),
      all_(shuffled_records(request), request.seed, request.epoch, true),
      interleaving_(files_that_take_turns(request), request.group, request.block),
      buckets_(order_of_buckets(request)),
      blocks_(order_of_blocks(request)) {}

std::uint64_t Order::at(std::uint64_t position) const {
  if (buckets_) return buckets_->at(position);
  if (blocks_) return blocks_->at(position);
  switch (request_.ordering) {
    case Ordering::shuffled:
      return all_.at(position);
    case Ordering::interleaved:
      return interleaving_.at(position);
    default:
      return position;
  }
}

bool Schedule::has_last_step(std::uint64_t left) const {
  switch (remainder) {
    case Remainder::full_batches:
      return false;
    case Remainder::drop:
      return left >= ranks;
    default:
      return left > 0;
  }
}

std::uint64_t Schedule::steps() const {
  const std::uint64_t all = batch * ranks, left = count - std::min(begin, count);
  const std::uint64_t steps = left / all + (has_last_step(left % all) ? 1 : 0);
  return steps > offset ? (steps - offset + stride - 1) / stride : 0;
}

Schedule::Step Schedule::step(std::uint64_t number) const {
  const std::uint64_t all = batch * ranks, start = begin + (offset + number * stride) * all;
  const std::uint64_t taken = std::min(all, count - start);
  const Range mine = rank_share(taken, *this);
  return {start + mine.first, start + mine.last, start + taken};
}

}  // namespace pario::records
