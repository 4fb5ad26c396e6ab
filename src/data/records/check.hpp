// Checksums of records: in the index of a packed file, or in files of a format with checksums.
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

/// Bytes of a piece. The checksum of a record in an index is the XXH64 of its last piece, with that
/// of the piece before as seed; the last piece may be shorter.
inline constexpr std::uint64_t kSumPiece = 1 << 20;
inline std::uint64_t add_to_sum(std::uint64_t sum, std::span<const std::byte> piece) {
  return base::xxh64(piece.data(), piece.size(), sum);
}

/// True if checksums protect all bytes of a record, or, for tar, its headers.
bool has_checksums(const Index& index);
/// True if the checksums detect a wrong offset of a record in the index.
bool checks_offsets(const Index& index);

/// Compares a record with its checksums, piece by piece. For one thread.
class RecordCheck {
 public:
  /// `index` must outlive the check.
  RecordCheck(const Index& index, std::uint64_t record);
  /// Adds the next bytes of the stored record: kSumPiece of them, fewer only at its end.
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
  std::uint64_t sum_ = 0;       ///< for a checksum in an index
  std::uint64_t done_ = 0;      ///< bytes added, of a frame
  std::uint32_t checksum_ = 0;  ///< of the data in a frame, so far
  TarCheck tar_;
  std::byte head_[12] = {}, tail_[4] = {};
};

/// The damage to the whole record in `bytes`; null if the checksums show none.
const char* find_damage(const Index& index, std::uint64_t record, std::span<const std::byte> bytes);

/// EBADMSG: record `number` of the file `path` is damaged.
base::Error damage_error(const std::string& path, std::uint64_t number, const char* damage);

/// The skipped records. Any thread may use it.
class SkippedRecords {
 public:
  void add(std::uint64_t record, const base::Error& error);
  /// Record numbers within their files, ascending.
  std::vector<std::uint64_t> numbers() const;
  /// The error of the record skipped first; empty if there is none.
  std::string first() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> numbers_;
  std::string first_;
};

}  // namespace pario::records
