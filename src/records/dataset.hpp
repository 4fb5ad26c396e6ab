// Records by number, whatever the file they are in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "records/disk.hpp"
#include "records/formats.hpp"
#include "records/index.hpp"
#include "records/indexing.hpp"
#include "records/team.hpp"

namespace pario::records {

/// A file of records, or a directory, open for reading. Any thread, also after a fork: reads leave nothing behind.
class Dataset {
 public:
  /// With the index of the file (open_index).
  static base::Result<Dataset> open(const std::string& path);
  /// With an index that somebody has made.
  static base::Result<Dataset> open(const std::string& path, Index index);

  const Index& index() const { return index_; }
  const Format& format() const { return format_of(index_.kind()); }
  const std::string& path() const { return path_; }
  std::uint64_t count() const { return index_.count(); }
  /// The open file; null: a directory.
  const std::shared_ptr<const Disk>& file() const { return file_; }
  /// Reads a stretch of a record into `out`; ESTALE when it is not there any more. `record` < count(), `offset` within it.
  base::Status read(std::uint64_t record, std::uint64_t offset, std::span<std::byte> out) const;
  /// Reads a record as it lies; returns what of it is data.
  base::Result<base::Extent> read(std::uint64_t record, std::span<std::byte> out) const;

 private:
  Dataset(std::string path, Index index) : path_(std::move(path)), index_(std::move(index)) {}

  std::string path_;
  Index index_;
  std::shared_ptr<const Disk> file_;  ///< null: a directory
};

/// The checksum of a record that comes in pieces of 1 MiB, the last one shorter: XXH64 of a piece, with that of the piece before as seed.
inline constexpr std::uint64_t kSumPiece = 1 << 20;
inline std::uint64_t add_to_sum(std::uint64_t sum, std::span<const std::byte> piece) {
  return base::xxh64(piece.data(), piece.size(), sum);
}

struct Damage {
  std::uint64_t record;
  std::string what;
};
/// Reads everything and holds it against all checksums there are; at most `most` damaged records.
base::Result<std::vector<Damage>> verify(const Dataset& dataset, unsigned threads, std::size_t most, const Show& show = {});

}  // namespace pario::records
