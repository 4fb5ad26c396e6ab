#include "data/records/check.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "data/records/checksum.hpp"
#include "data/records/formats.hpp"

namespace pario::records {
namespace {

template <class T>
T number_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

bool has_checksums(const Index& index) {
  return checks_offsets(index) || index.kind() == Kind::tar;
}

bool checks_offsets(const Index& index) {
  return index.has_sums() || index.kind() == Kind::tfrecord;
}

RecordCheck::Where RecordCheck::place_of(const Index& index) {
  if (index.has_sums()) return Where::index;
  if (index.kind() == Kind::tar) return Where::headers;
  return index.kind() == Kind::tfrecord ? Where::frame : Where::nowhere;
}

RecordCheck::RecordCheck(const Index& index, std::uint64_t record)
    : index_(index),
      record_(record),
      length_(index.span(record).length()),
      where_(place_of(index)) {
  if (where_ == Where::index && length_ == 0) sum_ = add_to_sum(0, {});
}

void RecordCheck::add(std::span<const std::byte> piece) {
  if (where_ == Where::index && !piece.empty()) sum_ = add_to_sum(sum_, piece);
  if (where_ == Where::frame) add_to_frame(piece);
  if (where_ == Where::headers) tar_.add(piece);
}

/// A frame is head, data, tail; a piece may end anywhere within them.
void RecordCheck::add_to_frame(std::span<const std::byte> piece) {
  const base::Extent whole = base::Extent::at(done_, piece.size());
  const std::uint64_t head = sizeof head_,
                      tail = length_ - std::min<std::uint64_t>(length_, sizeof tail_);
  const auto part = [&](base::Extent where) {
    return piece.subspan(where.begin - whole.begin, where.length());
  };
  if (const auto where = base::intersection(whole, {0, head}); !where.empty())
    std::ranges::copy(part(where), head_ + where.begin);
  if (const auto where = base::intersection(whole, {head, tail}); !where.empty())
    checksum_ = crc32c(part(where), checksum_);
  if (const auto where = base::intersection(whole, {tail, length_}); !where.empty())
    std::ranges::copy(part(where), tail_ + (where.begin - tail));
  done_ += piece.size();
}

const char* RecordCheck::damage() const {
  if (where_ == Where::frame) return frame_damage();
  const bool wrong =
      where_ == Where::index && static_cast<std::uint32_t>(sum_) != index_.sum(record_);
  if (where_ == Where::headers) return tar_.damage();
  return wrong ? "wrong checksum of its data" : nullptr;
}

const char* RecordCheck::frame_damage() const {
  if (length_ < sizeof head_ || !is_tfrecord_head(head_)) return "wrong checksum of its length";
  if (length_ < sizeof head_ + sizeof tail_ ||
      number_at<std::uint64_t>(head_) != length_ - sizeof head_ - sizeof tail_)
    return "its length is not where the next record begins";
  return mask_crc32c(checksum_) == number_at<std::uint32_t>(tail_) ? nullptr
                                                                   : "wrong checksum of its data";
}

const char* find_damage(const Index& index, std::uint64_t record,
                        std::span<const std::byte> bytes) {
  RecordCheck check(index, record);
  for (; bytes.size() > kSumPiece; bytes = bytes.subspan(kSumPiece))
    check.add(bytes.first(kSumPiece));
  check.add(bytes);
  return check.damage();
}

base::Error damage_error(const std::string& path, std::uint64_t number, const char* damage) {
  return {.number = EBADMSG,
          .operation = "read record",
          .path = path,
          .detail = "record " + std::to_string(number) + ": " + damage};
}

void SkippedRecords::add(std::uint64_t record, const base::Error& error) {
  const std::scoped_lock lock(mutex_);
  if (numbers_.empty()) first_ = error.text();
  numbers_.push_back(record);
}

std::vector<std::uint64_t> SkippedRecords::numbers() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::uint64_t> sorted = numbers_;
  std::ranges::sort(sorted);
  return sorted;
}

std::string SkippedRecords::first() const {
  const std::scoped_lock lock(mutex_);
  return first_;
}

}  // namespace pario::records
