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

class FrameSearch {
 public:
  explicit FrameSearch(const Search& search) : search_(search), window_(search) {}

  /// The end of the record that begins at `at`. EBADMSG: its length is damaged.
  base::Result<std::uint64_t> end_of(std::uint64_t at) {
    const auto head = window_.at(at, kHead);
    if (!head.ok()) return head.error();
    if (head->size() < kHead) return wrong(at, "the last record is cut off");
    if (search_.damaged != OnDamage::ignore && !is_tfrecord_head(*head))
      return wrong(at, "no TFRecord begins here: wrong checksum of a length");
    const auto length = read<std::uint64_t>(*head, 0);
    if (length > search_.where.end - at || search_.where.end - at - length < kHead + kTail)
      return wrong(at, "the last record is cut off");
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

 private:
  base::Error wrong(std::uint64_t offset, const char* what) const {
    return damage_in(search_, "index tfrecord", offset, what);
  }

  const Search& search_;
  Window window_;
};

}  // namespace

base::Result<std::uint64_t> find_tfrecords(const Search& search, IndexBuilder& out) {
  FrameSearch frames(search);
  return walk_records(
      search,
      [&](std::uint64_t at) {
        out.begin(at);
        return frames.end_of(at);
      },
      [&](std::uint64_t at, const base::Error&) { return frames.find_head(at + 1); });
}

base::Extent tfrecord_payload(std::span<const std::byte> record) {
  return record.size() < kHead + kTail ? base::Extent{0, record.size()}
                                       : base::Extent{kHead, record.size() - kTail};
}

bool is_tfrecord_head(std::span<const std::byte> head) {
  return masked_crc32c(head.first(8)) == read<std::uint32_t>(head, 8);
}

}  // namespace pario::records
