// Checksums of records: pieces that end within the frame of a TFRecord, damage that readers report.
#include <cerrno>

#include "data/records/checksum.hpp"
#include "records_support.hpp"

namespace pario::records {
namespace {

class Check : public Records {
 protected:
  static std::string tfrecord(const std::string& data) {
    const std::uint64_t length = data.size();
    std::string out(reinterpret_cast<const char*>(&length), sizeof length);
    const std::uint32_t head = masked_crc32c(as_bytes(out)), tail = masked_crc32c(as_bytes(data));
    out.append(reinterpret_cast<const char*>(&head), 4)
        .append(data)
        .append(reinterpret_cast<const char*>(&tail), 4);
    return out;
  }
  static Index index_of(const std::string& path) {
    return *Index::read(*make_index({.path = path, .kind = Kind::tfrecord}), path);
  }
  /// Checks the only record in pieces of this length; returns its damage, or "".
  static std::string damage_in_pieces(const Index& index, const std::string& record,
                                      std::size_t length) {
    RecordCheck check(index, 0);
    for (std::size_t at = 0; at < record.size(); at += length)
      check.add(as_bytes(record).subspan(at, std::min(length, record.size() - at)));
    return check.damage() == nullptr ? "" : check.damage();
  }
};

TEST_F(Check, PiecesMayEndAnywhereInAFrame) {
  const std::string whole = tfrecord("thirty bytes that are checked.");
  const Index index = index_of(make("a.tfrecord", whole));
  for (std::size_t length = 1; length <= whole.size(); ++length) {
    EXPECT_EQ(damage_in_pieces(index, whole, length), "") << length;
    for (std::size_t byte = 0; byte < whole.size(); ++byte) {
      std::string damaged = whole;
      damaged[byte] ^= 1;
      EXPECT_EQ(damage_in_pieces(index, damaged, length),
                byte < 12 ? "wrong checksum of its length" : "wrong checksum of its data")
          << length << " " << byte;
    }
  }
}

TEST_F(Check, AChecksumContinuesThatOfTheBytesBefore) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283U);
  std::string bytes(40'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i * 31 + i / 7);
  for (std::size_t size = 1; size <= bytes.size(); size += 1 + size / 9) {
    std::uint32_t singly = 0;
    for (std::size_t i = 0; i < size; ++i) singly = crc32c(as_bytes(bytes).subspan(i, 1), singly);
    EXPECT_EQ(crc32c(as_bytes(bytes).first(size)), singly) << size;
  }
}

TEST_F(Check, ADatasetNamesTheDamagedRecordUnlessItDoesNotVerify) {
  std::string bytes = tfrecord("first") + tfrecord("second");
  bytes[21 + 13] ^= 1;
  const std::string path = make("a.tfrecord", bytes);
  std::vector<std::byte> memory(22);
  const auto checked = Dataset::open(path, index_of(path));
  EXPECT_EQ(checked->read(1, memory).error().number, EBADMSG);
  EXPECT_NE(checked->read(1, memory).error().text().find("record 1: wrong checksum of its data"),
            std::string::npos);
  EXPECT_TRUE(checked->read(0, std::span(memory).first(21)).ok());
  EXPECT_TRUE(Dataset::open(path, index_of(path), false)->read(1, memory).ok());
}

TEST_F(Check, ADamagedLengthEndsAtTheNextWholeOneIfItIsSkipped) {
  std::string bytes = tfrecord("first") + tfrecord("second") + tfrecord("third");
  bytes[21] ^= 1;
  const std::string path = make("a.tfrecord", bytes);
  EXPECT_EQ(make_index({.path = path, .kind = Kind::tfrecord}).error().number, EBADMSG);
  const Index index = *Index::read(
      *make_index({.path = path, .kind = Kind::tfrecord, .damaged = OnDamage::skip}), path);
  ASSERT_EQ(index.count(), 3U);
  EXPECT_EQ(index.span(1), (base::Extent{21, 43}));
}

}  // namespace
}  // namespace pario::records
