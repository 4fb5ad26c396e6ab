// Buckets: records of one range of keys, collected in memory or in a temporary file.
//
// A bucket consists of pieces. A piece begins with an identity, and holds for each record: the
// identity less the one before (zigzag, varint), twice its length (varint; plus one if it stayed
// in the input), and its bytes unless it stayed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/disk.hpp"
#include "data/records/philox.hpp"
#include "data/records/ranks.hpp"

namespace pario::records {

/// A store of pieces. Thread-safe.
class Heap {
 public:
  virtual ~Heap() = default;
  /// Stores `piece`, whose size and address are aligned; returns its place.
  virtual base::Result<std::uint64_t> put(std::span<const std::byte> piece) = 0;
  virtual base::Status get(std::uint64_t where, std::span<std::byte> piece) = 0;
  /// Frees a range.
  virtual void forget(base::Extent where) = 0;
  /// Makes the pieces visible to other ranks.
  virtual base::Status publish() { return {}; }
};
/// A heap in memory of `most` bytes, allocated at their first use.
base::Result<std::unique_ptr<Heap>> make_memory_heap(std::uint64_t most);
/// A heap in a file without a name in `directory`, with `expected` bytes reserved, or an Error.
base::Result<std::unique_ptr<Heap>> make_file_heap(const std::string& directory,
                                                   std::uint64_t expected, Caching caching);

/// A heap in a file of each rank that all ranks can read. `number`: of the shuffle that makes
/// `output`, equal on all ranks.
base::Result<std::unique_ptr<Heap>> make_shared_heap(const std::string& directory,
                                                     const std::string& output,
                                                     std::uint64_t number, const Ranks& ranks,
                                                     std::uint64_t expected, Caching caching);

/// The path of a rank's file of a shared heap, for all ranks. `number`: of the shuffle.
std::string heap_path(const std::string& directory, std::string_view output, std::uint64_t rank,
                      std::uint64_t number);
/// True for the names of such files for this output, made by this host. Only the next run of the
/// same output removes stale ones.
bool is_own_heap(std::string_view name, std::string_view output);

/// Records of a bucket that one write moved into the heap.
struct Spill {
  std::uint64_t where, used;
  std::uint64_t room() const { return base::round_up(used, kAlignment); }
};

/// Keys in [first, last].
struct KeyRange {
  std::uint64_t first = 0, last = ~std::uint64_t{0};
  /// The number of the part, of `count` equal ones, that contains a key.
  std::uint32_t part_of(std::uint64_t key, std::uint32_t count) const;
  KeyRange part(std::uint32_t number, std::uint32_t count) const;
};

struct Bucket {
  KeyRange keys;
  std::vector<Spill> pieces;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;   ///< of its records
  std::uint64_t stored = 0;  ///< of its pieces
};

/// A record in a piece.
struct Heaped {
  std::uint64_t identity = 0, length = 0;
  bool inside = true;                ///< false: it stayed in the input
  const std::byte* bytes = nullptr;  ///< of one that is inside
};

/// Reads the records of a piece one after the other.
class PieceReader {
 public:
  explicit PieceReader(std::span<const std::byte> piece)
      : begin_(piece.data()), at_(piece.data()), end_(piece.data() + piece.size()) {}
  bool more() const { return at_ < end_; }
  /// The offset of the next record in the piece.
  std::uint64_t position() const { return static_cast<std::uint64_t>(at_ - begin_); }
  Heaped next() {
    const std::uint64_t identity = take_identity();
    return take_rest(identity);
  }
  /// next() in two steps; between them, position() is the offset for heaped_at().
  std::uint64_t take_identity();
  Heaped take_rest(std::uint64_t identity);

 private:
  const std::byte *begin_, *at_, *end_;
  std::uint64_t identity_ = 0;
};
/// Length and bytes of the record whose identity ends at `at`; its own identity only if it stayed
/// in the input.
Heaped heaped_at(const std::byte* at);

/// Puts records into buckets. For one thread.
class BucketWriter {
 public:
  /// `memory`: `buffer` bytes for each bucket, aligned; must outlive the writer.
  BucketWriter(Heap& heap, KeyRange keys, std::uint32_t buckets, std::uint64_t buffer,
               std::span<std::byte> memory);
  /// Adds a record; one that is inside has at most `buffer` - 64 bytes.
  base::Status add(std::uint64_t key, const Heaped& record);
  /// Moves the contents of the buffers to the heap.
  base::Status finish();
  std::vector<Bucket> take() { return std::move(buckets_); }

 private:
  struct Filling {
    std::uint64_t used = 0, identity = 0;
  };
  base::Status flush(std::uint32_t number);

  Heap* heap_;
  KeyRange keys_;
  std::uint64_t size_;
  std::span<std::byte> memory_;
  std::vector<Filling> fillings_;
  std::vector<Bucket> buckets_;
};

/// Merges the buckets of several threads.
void merge(std::vector<Bucket>& into, std::vector<Bucket> more);

/// Converts buckets to numbers, to send them.
std::vector<std::uint64_t> numbers_of(const std::vector<Bucket>& buckets);
std::vector<Bucket> buckets_of(std::span<const std::uint64_t> numbers);

/// A bucket in memory, its records in the order of the shuffle.
class SortedBucket {
 public:
  /// Bytes of memory for a bucket.
  static std::uint64_t memory_for(const Bucket& bucket);
  /// Loads a bucket into `memory`, which must outlive it.
  static base::Result<SortedBucket> load(Heap& heap, const Bucket& bucket, const ShuffleKeys& keys,
                                         std::span<std::byte> memory);
  std::uint64_t count() const { return order_.size(); }
  /// Most bytes of memory of a bucket.
  static constexpr std::uint64_t kMost = 0xFFFFFFFF;
  /// The record at `number` in the order of the shuffle. Its identity is known only if it stayed in
  /// the input.
  Heaped record(std::uint64_t number) const;
  /// Loads a record that is needed soon into the processor's caches.
  void prefetch(std::uint64_t number) const {
    const std::byte* const record = bytes_ + position(order_[number]);
    for (std::size_t line = 0; line < 3; ++line) __builtin_prefetch(record + line * 64);
  }
  std::uint64_t length(std::uint64_t number) const {
    return heaped_at(bytes_ + position(order_[number])).length;
  }

 private:
  /// The upper 32 bits of a key within its range; below them the offset of its record.
  using Entry = std::uint64_t;
  static std::uint64_t position(Entry entry) { return entry & kMost; }
  base::Status read(Heap& heap, const Bucket& bucket, const ShuffleKeys& keys,
                    std::span<Entry> unsorted);
  void sort(std::span<const Entry> unsorted);
  void sort_equal(const ShuffleKeys& keys);
  std::uint64_t identity_at(std::uint64_t position) const;

  std::span<Entry> order_;
  std::byte* bytes_ = nullptr;
  std::vector<base::Extent> pieces_;  ///< in bytes_
};

}  // namespace pario::records
