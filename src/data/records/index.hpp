// The index of records (docs/records.md, The index file): where each begins and ends, and what it
// is called.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/column.hpp"

namespace pario::records {

/// How the records of a file are told apart. The numbers are those of the index file.
enum class Kind : std::uint32_t {
  lines = 1,
  fixed = 2,
  tfrecord = 3,
  tar = 4,
  raw = 5,
  directory = 6,
  packed = 7,
  parquet = 8,
  array_record = 9
};

/// Which file an index is of, as that was when it was indexed.
struct Fingerprint {
  std::uint64_t size = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970
  std::uint64_t ends = 0;     ///< XXH64 of the first and the last 64 KiB of what the records span
};

/// How the records of a file were put into buckets (pario records shuffle --fused).
struct Bucketing {
  std::uint64_t seed = 0, buckets = 0;
};
/// Records of one bucket, up to where the next stretch begins.
struct Stretch {
  std::uint64_t first;  ///< record
  std::uint64_t bucket;
};

/// Read-only and shared by all who read it; the bytes are mapped from a file or lie in memory. Any
/// thread, also after a fork.
class Index {
 public:
  /// EINVAL when it is none, damaged at its head, or of a later version. Bodies are not looked at:
  /// verify().
  static base::Result<Index> open(const std::string& path, base::Extent where = {});
  static base::Result<Index> read(std::vector<std::byte> image, const std::string& path);

  Kind kind() const { return kind_; }
  std::uint64_t count() const { return offsets_.count() - 1; }
  /// Records lie back to back: each ends where the next begins. Of a damaged index it is any
  /// stretch of whole().
  base::Extent span(std::uint64_t record) const {
    const std::uint64_t begin = std::min(offsets_.at(record), end_);
    return {begin, std::clamp(offsets_.at(record + 1), begin, end_)};
  }
  /// All of them.
  base::Extent whole() const { return {std::min(offsets_.at(0), end_), end_}; }
  /// The first record that begins at `offset` or behind it; count() when there is none.
  std::uint64_t first_from(std::uint64_t offset) const {
    return std::min(offsets_.first_from(offset), count());
  }
  const Fingerprint& fingerprint() const { return fingerprint_; }
  std::uint64_t bytes() const { return image_.size(); }

  bool has_names() const { return names_.count() != 0; }
  /// Relative to the directory that was indexed or packed; empty without names.
  std::string_view name(std::uint64_t record) const;
  /// Permissions and time of the file that became the record; 0 when not known.
  std::uint32_t mode(std::uint64_t record) const { return element<std::uint32_t>(modes_, record); }
  std::int64_t modified(std::uint64_t record) const {
    return element<std::int64_t>(times_, record);
  }
  bool has_sums() const { return !sums_.empty(); }
  /// The low half of the XXH64 of the record.
  std::uint32_t sum(std::uint64_t record) const { return element<std::uint32_t>(sums_, record); }

  /// Of a file whose records lie in buckets; the rest is asked of such ones only.
  const std::optional<Bucketing>& bucketing() const { return bucketing_; }
  std::uint64_t stretches() const { return stretches_.size() / sizeof(Stretch); }
  Stretch stretch(std::uint64_t number) const { return element<Stretch>(stretches_, number); }
  /// Where the record began in what was shuffled.
  std::uint64_t identity(std::uint64_t record) const { return identities_.at(record); }

  /// Of a file of groups of records, which are what is counted, and has spans, here: the number of
  /// the first record of a group; of count(), of all records.
  bool has_groups() const { return firsts_.count() != 0; }
  std::uint64_t first_of_group(std::uint64_t group) const { return firsts_.at(group); }

  /// EINVAL if a section other than the checksums of records is damaged. `by_record`: nor does that
  /// of the offsets count, for the checksums of the records show its damage.
  base::Status verify_sections(bool by_record = false) const;
  /// The same, and EINVAL if records do not lie one behind the other.
  base::Status verify() const;
  const std::string& path() const { return path_; }

 private:
  static base::Result<Index> parse(std::span<const std::byte> image,
                                   std::shared_ptr<const void> owner, const std::string& path);
  base::Status verify_section(std::size_t number) const;
  base::Status take_sections();
  base::Status take_section(std::size_t number);
  base::Status take_column(Column& out, std::span<const std::byte> bytes, std::uint64_t count,
                           const char* damage);
  bool take_stretches(std::span<const std::byte> bytes);
  base::Error damaged(const char* what) const;
  template <class T>
  static T element(std::span<const std::byte> column, std::uint64_t record) {
    T value{};
    if (!column.empty()) std::memcpy(&value, column.data() + record * sizeof value, sizeof value);
    return value;
  }

  std::shared_ptr<const void> owner_;
  std::span<const std::byte> image_;
  std::string path_;
  Kind kind_ = Kind::raw;
  std::uint64_t recorded_ = 0;  ///< as the head says
  std::uint64_t end_ = 0;       ///< of the last record
  Fingerprint fingerprint_;
  std::optional<Bucketing> bucketing_;
  Column offsets_, names_, identities_, firsts_;
  std::span<const std::byte> name_bytes_, modes_, times_, sums_, stretches_;
};

/// Takes records in the order in which they lie.
class IndexBuilder {
 public:
  /// Where the next record begins; the first call says where the first does.
  void begin(std::uint64_t offset) { offsets_.add(offset); }
  /// Of the record begun last; all records or none.
  void name(std::string_view name, std::uint32_t mode, std::int64_t modified);
  void sum(std::uint32_t sum);
  /// Of a file whose records lie in buckets, and have no names: first how, then before each stretch
  /// whose it is; and the identity of each record.
  void bucketing(const Bucketing& bucketing);
  void stretch(std::uint64_t bucket);
  void identity(std::uint64_t identity) { identities_.add(identity); }
  /// Of a file of groups of records: the number of the first record of each, and in the end that of
  /// all.
  void group(std::uint64_t first) { firsts_.add(first); }
  std::uint64_t count() const { return offsets_.count(); }
  /// Of memory, so far.
  std::uint64_t bytes() const;
  /// So many records of such a file are expected, and as much memory for them.
  void expect_bucketed(std::uint64_t records, std::uint64_t bytes);
  /// The index file's bytes. `end`: of the last record.
  std::vector<std::byte> finish(Kind kind, std::uint64_t end, const Fingerprint& fingerprint);

 private:
  ColumnBuilder offsets_, names_, identities_, firsts_;
  std::vector<std::byte> name_bytes_, modes_, times_, sums_, stretches_;
};

}  // namespace pario::records
