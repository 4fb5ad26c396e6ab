#include "data/records/given_batches.hpp"

#include <utility>

namespace pario::records {

void GivenBatches::add(GivenBatch batch, std::uint64_t bytes) {
  bytes_ += bytes;
  records_ += batch.numbers.size();
  batches_.push_back({std::move(batch), bytes});
}

std::vector<GivenBatch> GivenBatches::take(const Limits& group) {
  std::vector<GivenBatch> out;
  std::uint64_t bytes = 0, records = 0;
  while (!empty() && out.size() < group.batches &&
         (out.empty() || (bytes < group.bytes && records < group.records))) {
    Sized& next = batches_.front();
    bytes += next.bytes;
    records += next.batch.numbers.size();
    out.push_back(std::move(next.batch));
    batches_.pop_front();
  }
  bytes_ -= bytes;
  records_ -= records;
  return out;
}

}  // namespace pario::records
