#include "data/records/buckets.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <tuple>

#include "data/records/varint.hpp"

namespace pario::records {
namespace {

using Wide = unsigned __int128;

std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1 ^ (difference >> 63 != 0 ? ~std::uint64_t{0} : 0);
}
std::uint64_t unzigzag(std::uint64_t number) {
  return number >> 1 ^ ((number & 1) != 0 ? ~std::uint64_t{0} : 0);
}

/// Reads a record, and moves `at` to its end.
Heaped take_record(const std::byte*& at) {
  Heaped record;
  const std::uint64_t twice = take_number(at);
  record.length = twice >> 1;
  record.inside = (twice & 1) == 0;
  record.bytes = at;
  if (record.inside)
    at += record.length;
  else
    record.identity = take_number(at);
  return record;
}

}  // namespace

std::uint32_t KeyRange::part_of(std::uint64_t key, std::uint32_t count) const {
  if (last - first == ~std::uint64_t{0})
    return static_cast<std::uint32_t>(Wide{key} * count >> 64);  // the same without a division
  return static_cast<std::uint32_t>(Wide{key - first} * count / (Wide{last - first} + 1));
}

KeyRange KeyRange::part(std::uint32_t number, std::uint32_t count) const {
  const Wide width = Wide{last - first} + 1;
  const auto begin = [&](std::uint32_t part) {
    return static_cast<std::uint64_t>((width * part + count - 1) / count);
  };
  return {first + begin(number), first + begin(number + 1) - 1};
}

std::uint64_t PieceReader::take_identity() { return identity_ += unzigzag(take_number(at_)); }

Heaped PieceReader::take_rest(std::uint64_t identity) {
  Heaped record = take_record(at_);
  record.identity = identity;
  return record;
}

Heaped heaped_at(const std::byte* at) { return take_record(at); }

BucketWriter::BucketWriter(Heap& heap, KeyRange keys, std::uint32_t buckets, std::uint64_t buffer,
                           std::span<std::byte> memory)
    : heap_(&heap),
      keys_(keys),
      size_(buffer),
      memory_(memory),
      fillings_(buckets),
      buckets_(buckets) {
  for (std::uint32_t number = 0; number < buckets; ++number)
    buckets_[number].keys = keys.part(number, buckets);
}

base::Status BucketWriter::add(std::uint64_t key, const Heaped& record) {
  const std::uint32_t number = keys_.part_of(key, static_cast<std::uint32_t>(buckets_.size()));
  Filling& filling = fillings_[number];
  constexpr std::uint64_t kHeads = 3 * kLongestNumber;
  if (size_ - filling.used < kHeads + (record.inside ? record.length : 0))
    if (base::Status status = flush(number); !status) return status;
  std::byte* const begin = memory_.data() + number * size_ + filling.used;
  std::byte* at = put_number(begin, zigzag(record.identity - filling.identity));
  at = put_number(at, record.length << 1 | (record.inside ? 0 : 1));
  if (record.inside) {
    if (record.length != 0) std::memcpy(at, record.bytes, record.length);
    at += record.length;
  } else {
    at = put_number(at, record.identity);
  }
  filling.used += static_cast<std::uint64_t>(at - begin);
  filling.identity = record.identity;
  buckets_[number].records += 1;
  buckets_[number].bytes += record.length;
  return {};
}

base::Status BucketWriter::flush(std::uint32_t number) {
  Filling& filling = fillings_[number];
  if (filling.used == 0) return {};
  Bucket& bucket = buckets_[number];
  Spill piece{.where = 0, .used = filling.used};
  const base::Result<std::uint64_t> where =
      heap_->put({memory_.data() + number * size_, piece.room()});
  if (!where.ok()) return where.error();
  piece.where = *where;
  bucket.stored += piece.room();
  bucket.pieces.push_back(piece);
  filling = {};
  return {};
}

base::Status BucketWriter::finish() {
  for (std::uint32_t number = 0; number < fillings_.size(); ++number)
    if (base::Status status = flush(number); !status) return status;
  return {};
}

void merge(std::vector<Bucket>& into, std::vector<Bucket> more) {
  if (into.empty()) {
    into = std::move(more);
    return;
  }
  for (std::size_t i = 0; i < more.size(); ++i) {
    into[i].pieces.insert(into[i].pieces.end(), more[i].pieces.begin(), more[i].pieces.end());
    into[i].records += more[i].records;
    into[i].bytes += more[i].bytes;
    into[i].stored += more[i].stored;
  }
}

std::vector<std::uint64_t> numbers_of(const std::vector<Bucket>& buckets) {
  std::vector<std::uint64_t> out;
  for (const Bucket& bucket : buckets) {
    out.insert(out.end(), {bucket.keys.first, bucket.keys.last, bucket.records, bucket.bytes,
                           bucket.stored, bucket.pieces.size()});
    for (const Spill& piece : bucket.pieces) out.insert(out.end(), {piece.where, piece.used});
  }
  return out;
}

std::vector<Bucket> buckets_of(std::span<const std::uint64_t> numbers) {
  std::vector<Bucket> out;
  for (std::size_t at = 0; at < numbers.size();) {
    Bucket& bucket = out.emplace_back();
    bucket.keys = {numbers[at], numbers[at + 1]};
    bucket.records = numbers[at + 2];
    bucket.bytes = numbers[at + 3];
    bucket.stored = numbers[at + 4];
    const std::size_t end = at + 6 + 2 * numbers[at + 5];
    for (at += 6; at < end; at += 2) bucket.pieces.push_back({numbers[at], numbers[at + 1]});
  }
  return out;
}

std::uint64_t SortedBucket::memory_for(const Bucket& bucket) {
  return base::round_up(2 * bucket.records * sizeof(Entry), kAlignment) + bucket.stored;
}

base::Result<SortedBucket> SortedBucket::load(Heap& heap, const Bucket& bucket,
                                              const ShuffleKeys& keys,
                                              std::span<std::byte> memory) {
  SortedBucket out;
  const std::span<Entry> entries(reinterpret_cast<Entry*>(memory.data()), 2 * bucket.records);
  out.order_ = entries.first(bucket.records);
  out.bytes_ = memory.data() + base::round_up(entries.size_bytes(), kAlignment);
  const std::span<Entry> unsorted = entries.subspan(bucket.records);
  if (base::Status status = out.read(heap, bucket, keys, unsorted); !status) return status.error();
  out.sort(unsorted);
  out.sort_equal(keys);
  return out;
}

base::Status SortedBucket::read(Heap& heap, const Bucket& bucket, const ShuffleKeys& keys,
                                std::span<Entry> unsorted) {
  const int unused = std::countl_zero((bucket.keys.last - bucket.keys.first) | 1);
  std::byte* const bytes = bytes_;
  std::uint64_t at = 0, number = 0;
  for (const Spill& piece : bucket.pieces) {
    if (base::Status status = heap.get(piece.where, {bytes + at, piece.room()}); !status)
      return status;
    for (PieceReader reader({bytes + at, piece.used}); reader.more();) {
      const std::uint64_t identity = reader.take_identity(),
                          open = (keys.of(identity) - bucket.keys.first) << unused;
      unsorted[number++] = (open & ~kMost) | (at + reader.position());
      reader.take_rest(identity);
    }
    pieces_.push_back({at, at + piece.used});
    at += piece.room();
  }
  return {};
}

/// Sorts entries: the upper bits of the keys, which are random, divide them into short runs.
void SortedBucket::sort(std::span<const Entry> unsorted) {
  constexpr std::uint64_t kRun = 8;  // records, about
  const int bits = std::min(32, static_cast<int>(std::bit_width(unsorted.size() / kRun)));
  const auto run_of = [&](Entry entry) { return bits == 0 ? 0 : entry >> (64 - bits); };
  std::vector<std::uint32_t> ends((std::uint64_t{1} << bits) +
                                  1);  // at first the begin of each run, shifted by one
  for (const Entry entry : unsorted) ++ends[run_of(entry) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  for (const Entry entry : unsorted) order_[ends[run_of(entry)]++] = entry;
  for (std::uint64_t run = 0, begin = 0; run + 1 < ends.size(); begin = ends[run++])
    std::ranges::sort(order_.subspan(begin, ends[run] - begin));
}

/// Sorts the few records whose Entries have equal keys.
void SortedBucket::sort_equal(const ShuffleKeys& keys) {
  std::vector<std::tuple<std::uint64_t, std::uint64_t, Entry>> equal;
  for (std::size_t first = 0, behind = 1; first < order_.size(); first = behind++) {
    while (behind < order_.size() && (order_[behind] ^ order_[first]) <= kMost) ++behind;
    if (behind - first == 1) continue;
    equal.clear();
    for (const Entry entry : order_.subspan(first, behind - first)) {
      const std::uint64_t identity = identity_at(position(entry));
      equal.emplace_back(keys.of(identity), identity, entry);
    }
    std::ranges::sort(equal);
    for (std::size_t i = first; i < behind; ++i) order_[i] = std::get<2>(equal[i - first]);
  }
}

std::uint64_t SortedBucket::identity_at(std::uint64_t position) const {
  const auto piece = std::ranges::upper_bound(pieces_, position, {}, &base::Extent::begin) - 1;
  PieceReader reader({bytes_ + piece->begin, piece->length()});
  while (reader.more()) {
    const std::uint64_t identity = reader.take_identity();
    if (piece->begin + reader.position() == position) return identity;
    reader.take_rest(identity);
  }
  return 0;
}

Heaped SortedBucket::record(std::uint64_t number) const {
  return heaped_at(bytes_ + position(order_[number]));
}

}  // namespace pario::records
