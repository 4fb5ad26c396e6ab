// TFRecord: length (8 bytes), masked CRC-32C of the length, data, masked CRC-32C of the data.
#include <cerrno>
#include <cstring>

#include "data/records/checksum.hpp"
#include "data/records/formats.hpp"

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
  return {.number = EBADMSG,
          .operation = "index tfrecord",
          .path = search.file.path(),
          .where = {offset, search.where.end},
          .detail = what};
}

class FrameSearch {
 public:
  FrameSearch(const Search& search, IndexBuilder& out)
      : search_(search), out_(out), window_(search) {}

  base::Status run() {
    std::uint64_t at = search_.where.begin;
    while (at < search_.where.end && !search_.meter.is_stopped()) {
      base::Result<std::uint64_t> next = end_of(at);
      if (!next.ok() && next.error().number == EBADMSG && search_.damaged == OnDamage::skip)
        next = find_head(at + 1);
      if (!next.ok()) return next.error();
      out_.begin(at);
      at = *next;
    }
    return {};
  }

 private:
  /// The end of the record that begins at `at`. EBADMSG: its length is damaged.
  base::Result<std::uint64_t> end_of(std::uint64_t at) {
    const auto head = window_.at(at, kHead);
    if (!head.ok()) return head.error();
    if (head->size() < kHead) return wrong(search_, at, "the last record is cut off");
    if (search_.damaged != OnDamage::ignore && !is_tfrecord_head(*head))
      return wrong(search_, at, "no TFRecord begins here: wrong checksum of a length");
    const auto length = read<std::uint64_t>(*head, 0);
    if (length > search_.where.end - at || search_.where.end - at - length < kHead + kTail)
      return wrong(search_, at, "the last record is cut off");
    return at + kHead + length + kTail;
  }

  /// The next record whose length is valid and fits into the file; the end of the search if there
  /// is none.
  base::Result<std::uint64_t> find_head(std::uint64_t at) {
    for (; at < search_.where.end && !search_.meter.is_stopped(); ++at) {
      const auto head = window_.at(at, kHead);
      if (!head.ok()) return head.error();
      if (head->size() == kHead && is_tfrecord_head(*head) && end_of(at).ok()) return at;
    }
    return search_.where.end;
  }

  const Search& search_;
  IndexBuilder& out_;
  Window window_;
};

}  // namespace

base::Result<std::uint64_t> find_tfrecords(const Search& search, IndexBuilder& out) {
  base::Status status =
      run_team(1, search.meter, [&](unsigned) { return FrameSearch(search, out).run(); });
  return status ? base::Result<std::uint64_t>(search.where.end) : status.error();
}

base::Extent tfrecord_payload(std::span<const std::byte> record) {
  return record.size() < kHead + kTail ? base::Extent{0, record.size()}
                                       : base::Extent{kHead, record.size() - kTail};
}

bool is_tfrecord_head(std::span<const std::byte> head) {
  return masked_crc32c(head.first(8)) == read<std::uint32_t>(head, 8);
}

}  // namespace pario::records
