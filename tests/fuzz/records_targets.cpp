// Indices of records, packed files, TFRecord and tar files.
#include <algorithm>

#include "core/base/base.hpp"
#include "data/records/checksum.hpp"
#include "data/records/records.hpp"
#include "targets.hpp"

namespace pario::fuzz {
namespace {

constexpr std::uint64_t kMostRecords = 4096;  // that a run looks at
// docs/records.md, The index file
constexpr std::size_t kSections = 6, kSectionAt = 56, kSectionSize = 32, kHeadSum = 248;
constexpr std::size_t kTrailer = 32;  // of a packed file

std::uint64_t hash(Input bytes) { return base::xxh64(bytes.data(), bytes.size()); }

/// Returns the bytes of `image` at an offset that it contains; empty if it is out of range.
Input slice(Input image, std::uint64_t offset, std::uint64_t size) {
  if (offset > image.size() || size > image.size() - offset) return {};
  return image.subspan(offset, size);
}

/// Repairs the checksums of an index's sections and head.
Bytes repair_index(Input input) {
  Bytes image(input.begin(), input.end());
  if (image.size() < kHeadSum + 8) return image;
  for (std::size_t i = 0; i < kSections; ++i) {
    const std::size_t at = kSectionAt + i * kSectionSize;
    const Input body = slice(image, number_at<std::uint64_t>(image, at + 8),
                             number_at<std::uint64_t>(image, at + 16));
    put_number(image, at + 24, hash(body));
  }
  put_number(image, kHeadSum, hash(Input(image).first(kHeadSum)));
  return image;
}

void look_at(const records::Index& index) {
  const base::Extent whole = index.whole();
  const bool sound = static_cast<bool>(index.verify());
  std::uint64_t end = whole.begin;
  for (std::uint64_t record = 0; record < std::min(index.count(), kMostRecords); ++record) {
    const base::Extent span = index.span(record);
    require(span.begin <= span.end && span.begin >= std::min(whole.begin, span.begin) &&
                span.end <= whole.end,
            "a record lies within the records of its index");
    require(!sound || span.begin == end, "records of a verified index lie back to back");
    end = span.end;
    require(index.name(record).size() <= index.bytes(), "a name is no longer than its index");
    static_cast<void>(index.mode(record) + index.modification_time(record) + index.sum(record));
    if (index.bucketing()) static_cast<void>(index.identity(record));
    if (index.has_groups()) static_cast<void>(index.first_of_group(record));
  }
  require(index.first_from(whole.end / 2) <= index.count(), "a search ends at the last record");
  if (!index.bucketing()) return;
  for (std::uint64_t i = 0; i < std::min(index.runs(), kMostRecords); ++i)
    require(index.run(i).bucket < index.bucketing()->buckets, "a run lies in one of the buckets");
}

void read_index(Bytes image) {
  if (const auto index = records::Index::read(std::move(image), "fuzz"); index.ok())
    look_at(*index);
}

/// Repairs the checksums of a packed file's trailer and index.
Bytes repair_packed(Input input) {
  if (input.size() < kTrailer) return {input.begin(), input.end()};
  const Input trailer = input.last(kTrailer);
  const auto offset = number_at<std::uint64_t>(trailer, 0),
             size = number_at<std::uint64_t>(trailer, 8);
  Bytes image(input.begin(), input.end());
  if (const Bytes index = repair_index(slice(input, offset, size)); !index.empty())
    std::ranges::copy(index, image.begin() + static_cast<std::ptrdiff_t>(offset));
  put_number(image, image.size() - 16, hash(Input(image).subspan(image.size() - kTrailer, 16)));
  return image;
}

void read_packed(Input input) {
  const MemoryFile file(input);
  const auto index = records::open_packed(file.path());
  require(index.ok() <= records::is_packed(file.path()), "an opened packed file is one");
  if (index.ok()) look_at(*index);
}

/// Searches a file for records; the index of the result must verify.
void search(Input input, records::Kind kind) {
  const MemoryFile file(input);
  auto image = records::make_index({.path = file.path(), .kind = kind, .threads = 1});
  if (!image.ok()) return;
  const auto index = records::Index::read(*std::move(image), file.path());
  require(index.ok() && index->verify(), "a new index verifies");
  require(index->whole().end <= input.size(), "found records lie within the file");

  look_at(*index);
}

/// Repairs the checksums of lengths and data in a file of TFRecord.
Bytes repair_tfrecords(Input input) {
  Bytes image(input.begin(), input.end());
  for (std::size_t at = 0; image.size() - at >= 16;) {
    const auto length =
        std::min<std::uint64_t>(number_at<std::uint64_t>(image, at), image.size() - at - 16);
    put_number(image, at + 8, records::masked_crc32c(Input(image).subspan(at, 8)));
    put_number(image, at + 12 + length,
               records::masked_crc32c(Input(image).subspan(at + 12, length)));
    at += 16 + length;
  }
  return image;
}

/// Repairs the checksum of each block of a tar file that looks like a header.
Bytes repair_tar(Input input) {
  Bytes image(input.begin(), input.end());
  for (std::size_t at = 0; at + records::kTarBlock <= image.size(); at += records::kTarBlock) {
    if (std::memcmp(image.data() + at + 257, "ustar", 5) != 0) continue;
    unsigned sum = 8 * ' ';
    for (std::size_t i = 0; i < records::kTarBlock; ++i)
      if (i < 148 || i >= 156) sum += std::to_integer<unsigned>(image[at + i]);
    for (std::size_t i = 6; i-- > 0; sum >>= 3)
      image[at + 148 + i] = static_cast<std::byte>('0' + (sum & 7));
    image[at + 154] = std::byte{0};
  }
  return image;
}

}  // namespace

void record_index(Input input) {
  read_index({input.begin(), input.end()});
  read_index(repair_index(input));
}

void packed_records(Input input) {
  read_packed(input);
  read_packed(repair_packed(input));
}

void tfrecords(Input input) {
  if (input.size() >= 12) static_cast<void>(records::is_tfrecord_head(input.first(12)));
  const base::Extent data = records::tfrecord_payload(input);
  require(data.begin <= data.end && data.end <= input.size(), "the data of a record lie within it");
  search(input, records::Kind::tfrecord);
  search(repair_tfrecords(input), records::Kind::tfrecord);
}

void tar_records(Input input) {
  static_cast<void>(records::sample_key(as_text(input)));
  search(input, records::Kind::tar);
  search(repair_tar(input), records::Kind::tar);
}

}  // namespace pario::fuzz
