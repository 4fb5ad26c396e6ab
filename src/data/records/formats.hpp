// Formats of record files: the search for records, their data, their checksums.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/disk.hpp"
#include "data/records/index.hpp"
#include "data/records/tar_block.hpp"
#include "data/records/team.hpp"

namespace pario::records {

/// The reaction of a reader to a damaged record: compute no checksums, return an Error, or skip the
/// record.
enum class OnDamage : std::uint8_t { ignore, fail, skip };

/// A search of a file for records.
struct Search {
  const Disk& file;
  base::Extent where;
  unsigned threads;
  Meter& meter;
  OnDamage damaged = OnDamage::fail;  ///< skip: after a damaged length continue at a valid one
  bool at_record = true;  ///< a record begins at where.begin; false is for lines only: one begins
                          ///< there if a line feed precedes it
};

struct Format {
  Kind kind;
  const char* name;
  const char* endings;  ///< of file names, separated by blanks
  const char* meaning;
  /// Adds the offset of each record to the builder; returns the end of the last one. Null: the
  /// offsets cannot be found from the file alone.
  base::Result<std::uint64_t> (*find)(const Search&, IndexBuilder&);
  /// The extent of the data of a record, relative to its first byte.
  base::Extent (*payload)(std::span<const std::byte> record);
  std::uint64_t trailer;  ///< zeros with which a file of such records ends
  bool grouped = false;   ///< records are stored in groups, which only the packages of the format
                          ///< can decode
};

std::span<const Format> formats();
const Format& format_of(Kind kind);
/// The format of a name; null: there is none.
const Format* format_named(std::string_view name);
/// The format of a file by its suffix or its first bytes; null: unknown.
const Format* guess_format(const std::string& path);

// Functions of the table.
base::Result<std::uint64_t> find_lines(const Search& search, IndexBuilder& out);
base::Extent line_payload(std::span<const std::byte> record);
base::Result<std::uint64_t> find_tfrecords(const Search& search, IndexBuilder& out);
base::Extent tfrecord_payload(std::span<const std::byte> record);
/// True for the first 12 bytes of a TFRecord: its length has the correct checksum.
bool is_tfrecord_head(std::span<const std::byte> head);
base::Result<std::uint64_t> find_samples(const Search& search, IndexBuilder& out);
/// The part of the name of a member that is the same for all members of a record; empty: the member
/// belongs to the record before.
std::string_view sample_key(std::string_view name);
/// Compares the headers of the members of a record with their checksums.
class TarCheck {
 public:
  /// Adds the next bytes of the record; a multiple of kTarBlock unless they are the last.
  void add(std::span<const std::byte> piece);
  /// The damage, when all bytes of the record have been added; null: there is none.
  const char* damage() const;

 private:
  void take(std::span<const std::byte> header, std::span<const std::byte> behind);

  std::uint64_t done_ = 0, next_ = 0;        ///< bytes added; the next header
  std::optional<std::uint64_t> own_size_{};  ///< of the next member, by its extended header
  bool damaged_ = false, over_ = false;      ///< over: no further header can be found
};
struct TarMember {
  std::string_view name;
  std::uint64_t size = 0;
  std::uint32_t mode = 0644;
  std::uint64_t modified = 0;  ///< seconds since 1970
};
/// The header of a member. Its bytes are padded with zeros to a multiple of kTarBlock.
std::vector<std::byte> tar_head(const TarMember& member);

/// A window of a file in memory, for reads that mostly go forwards.
class Window {
 public:
  explicit Window(const Search& search) : search_(search) {}
  /// `size` bytes, at most 64 KiB, from `offset` on; fewer only at the end of the search. Valid
  /// until the next call.
  base::Result<std::span<const std::byte>> at(std::uint64_t offset, std::uint64_t size);

 private:
  const Search& search_;
  std::optional<Buffer> buffer_;
  base::Extent held_;
};

/// Damage at `offset` of a search, for the action `operation`.
inline base::Error damage_in(const Search& search, const char* operation, std::uint64_t offset,
                             const char* what, int number = EBADMSG) {
  return {.number = number,
          .operation = operation,
          .path = search.file.path(),
          .where = {offset, search.where.end},
          .detail = what};
}

/// Goes from record to record: `find_next(at)` returns the offset of the next record, or `at` at
/// the end of the records. If damage is to be skipped, `pass_damage(at, error)` returns the offset
/// to continue at. Returns the end of the records.
template <class FindNext, class PassDamage>
base::Result<std::uint64_t> walk_records(const Search& search, FindNext find_next,
                                         PassDamage pass_damage) {
  std::uint64_t at = search.where.begin;
  const base::Status status = run_team(1, search.meter, [&](unsigned) -> base::Status {
    while (at < search.where.end && !search.meter.is_stopped()) {
      base::Result<std::uint64_t> next = find_next(at);
      if (!next.ok() && next.error().number == EBADMSG && search.damaged == OnDamage::skip)
        next = pass_damage(at, next.error());
      if (!next.ok()) return next.error();
      if (*next == at) break;
      at = *next;
    }
    return {};
  });
  return status ? base::Result<std::uint64_t>(at) : status.error();
}

}  // namespace pario::records
