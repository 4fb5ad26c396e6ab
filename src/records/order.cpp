#include "records/order.hpp"

#include <algorithm>

namespace pario::records {
namespace {

std::optional<BucketOrder> order_of_buckets(const OrderRequest& request) {
  if (request.bucketed && request.ordering == Ordering::as_they_lie) return BucketOrder(*request.bucketed);
  if (request.bucketed && request.ordering == Ordering::shuffled) return BucketOrder(*request.bucketed, request.seed, request.epoch);
  return {};
}

std::uint64_t shuffled_records(const OrderRequest& request) {
  return request.ordering == Ordering::shuffled && !request.bucketed ? request.count : 0;
}

std::optional<BlockOrder> order_of_blocks(const OrderRequest& request) {
  if (request.ordering != Ordering::blocks) return {};
  return BlockOrder({request.count, request.block, request.begins}, request.group, request.seed, request.epoch);
}

std::span<const std::uint64_t> files_that_take_turns(const OrderRequest& request) {
  return request.ordering == Ordering::interleaved ? std::span(request.files) : std::span<const std::uint64_t>{};
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
