// Batches by the numbers of their records, in the order in which a loader reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace pario::records {

/// The records of a batch by their numbers, and the positions of the epoch that all ranks have read
/// after it.
struct GivenBatch {
  std::vector<std::uint64_t> numbers;
  std::uint64_t end;
};

/// Batches that were given and are not planned yet. One thread at a time.
class GivenBatches {
 public:
  void add(GivenBatch batch, std::uint64_t bytes);
  /// No other batch will be added.
  void end() { ended_ = true; }
  bool is_complete() const { return ended_; }
  bool empty() const { return batches_.empty(); }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t records() const { return records_; }
  /// The records of the next batch; not empty().
  std::size_t next_size() const { return batches_.front().batch.numbers.size(); }

  /// A group has at most so many batches, and no other once it has so many bytes or records.
  struct Limits {
    std::uint64_t batches, bytes, records;
  };
  /// True if take() would take no more after another call of add().
  bool fill(const Limits& group) const {
    return ended_ || batches_.size() >= group.batches || bytes_ >= group.bytes ||
           records_ >= group.records;
  }
  /// Removes the next batches.
  std::vector<GivenBatch> take(const Limits& group);

 private:
  struct Sized {
    GivenBatch batch;
    std::uint64_t bytes;
  };
  std::deque<Sized> batches_;
  std::uint64_t bytes_ = 0, records_ = 0;
  bool ended_ = false;
};

}  // namespace pario::records
