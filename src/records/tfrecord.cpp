// TFRecord: length (8 bytes), masked CRC-32C of the length, data, masked CRC-32C of the data.
#include <cerrno>
#include <cstring>

#include "records/checksum.hpp"
#include "records/formats.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kHead = 12, kTail = 4;

template <class T>
T read(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

base::Error wrong(const Search& search, std::uint64_t offset, const char* what) {
  return {.number = EINVAL, .operation = "index tfrecord", .path = search.file.path(), .where = {offset, search.where.end}, .detail = what};
}

base::Status find_all(const Search& search, IndexBuilder& out) {
  Window window(search);
  std::uint64_t at = search.where.begin;
  while (at < search.where.end && !search.meter.stopped()) {
    const auto head = window.at(at, kHead);
    if (!head.ok()) return head.error();
    if (head->size() < kHead) return wrong(search, at, "the last record is cut off");
    if (masked_crc32c(head->first(8)) != read<std::uint32_t>(*head, 8))
      return wrong(search, at, "no TFRecord begins here: wrong checksum of a length");
    const auto length = read<std::uint64_t>(*head, 0);
    if (length > search.where.end - at || search.where.end - at - length < kHead + kTail)
      return wrong(search, at, "the last record is cut off");
    out.begin(at);
    at += kHead + length + kTail;
  }
  return {};
}

}  // namespace

base::Result<std::uint64_t> find_tfrecords(const Search& search, IndexBuilder& out) {
  base::Status status = run_team(1, search.meter, [&](unsigned) { return find_all(search, out); });
  return status ? base::Result<std::uint64_t>(search.where.end) : status.error();
}

base::Extent tfrecord_payload(std::span<const std::byte> record) {
  return record.size() < kHead + kTail ? base::Extent{0, record.size()} : base::Extent{kHead, record.size() - kTail};
}

const char* tfrecord_damage(std::span<const std::byte> record) {
  if (record.size() < kHead || masked_crc32c(record.first(8)) != read<std::uint32_t>(record, 8)) return "wrong checksum of its length";
  if (record.size() == kHead) return nullptr;  // only its head is here
  const auto data = tfrecord_payload(record);
  if (record.size() < kHead + kTail || read<std::uint64_t>(record, 0) != data.length())
    return "its length is not where the next record begins";
  const bool right = masked_crc32c(record.subspan(data.begin, data.length())) == read<std::uint32_t>(record, data.end);
  return right ? nullptr : "wrong checksum of its data";
}

}  // namespace pario::records
