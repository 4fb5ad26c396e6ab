// Checksums of records: those in the index of a packed file, and those that a format has in the
// file.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/formats.hpp"
#include "data/records/index.hpp"

namespace pario::records {

/// The checksum of a record in an index is computed over pieces of 1 MiB, the last one shorter:
/// XXH64 of a piece, with that of the piece before as seed.
inline constexpr std::uint64_t kSumPiece = 1 << 20;
inline std::uint64_t add_to_sum(std::uint64_t sum, std::span<const std::byte> piece) {
  return base::xxh64(piece.data(), piece.size(), sum);
}

/// Whether damage to a record can be noticed: to all of its bytes, or, of tar, to its headers.
bool has_checksums(const Index& index);
/// Whether the checksums show that a record does not lie where its index says.
bool checks_offsets(const Index& index);

/// Compares a record with its checksums, piece by piece. One thread's.
class RecordCheck {
 public:
  /// `index` outlives the check.
  RecordCheck(const Index& index, std::uint64_t record);
  /// The next bytes of the record as it lies in the file: kSumPiece of them, fewer only at its end.
  void add(std::span<const std::byte> piece);
  /// The damage; null if the checksums show none. Call it after the last piece.
  const char* damage() const;

 private:
  enum class Where : std::uint8_t { nowhere, index, frame, headers };
  static Where place_of(const Index& index);
  void add_to_frame(std::span<const std::byte> piece);
  const char* frame_damage() const;

  const Index& index_;
  std::uint64_t record_, length_;
  Where where_;
  std::uint64_t sum_ = 0;       ///< of an index
  std::uint64_t done_ = 0;      ///< bytes added, of a frame
  std::uint32_t checksum_ = 0;  ///< of the data in a frame, so far
  TarCheck tar_;
  std::byte head_[12] = {}, tail_[4] = {};
};

/// The damage to a whole record, which lies in `bytes`; null if the checksums show none.
const char* find_damage(const Index& index, std::uint64_t record, std::span<const std::byte> bytes);

/// EBADMSG: record `number` of the file `path` is damaged.
base::Error damage_error(const std::string& path, std::uint64_t number, const char* damage);

/// The records that were skipped. Any thread.
class SkippedRecords {
 public:
  void add(std::uint64_t record, const base::Error& error);
  /// Record numbers within their files, ascending.
  std::vector<std::uint64_t> numbers() const;
  /// The error of the one that was found first; empty if there is none.
  std::string first() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> numbers_;
  std::string first_;
};

}  // namespace pario::records
