// The index of records (docs/records.md, The index file): begin, end and name of each.
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
#include "data/records/disk.hpp"

namespace pario::records {

/// Formats of record files, by the numbers in the index file.
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

/// Identifies the contents of a file at the time of indexing.
struct Fingerprint {
  std::uint64_t size = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970
  std::uint64_t ends = 0;     ///< XXH64 of the first and the last 64 KiB of the records' range
};

/// How the records of a file were put into buckets (pario records shuffle --fused).
struct Bucketing {
  std::uint64_t seed = 0, buckets = 0;
};
/// A run of records of one bucket, up to the next run.
struct BucketRun {
  std::uint64_t first;  ///< record
  std::uint64_t bucket;
};

/// A read-only index, mapped from a file or in memory; copies share its bytes. Any thread may use
/// it, also after a fork.
class Index {
 public:
  /// Opens an index. EINVAL if it is none, its head is damaged, or its version is later. Does not
  /// check the body: verify().
  static base::Result<Index> open(const std::string& path, base::Extent where = {});
  static base::Result<Index> read(std::vector<std::byte> image, const std::string& path);

  Kind kind() const { return kind_; }
  std::uint64_t count() const { return offsets_.count() - 1; }
  /// The extent of a record. Records lie back to back. With a damaged index it is any part of
  /// whole().
  base::Extent span(std::uint64_t record) const {
    const std::uint64_t begin = std::min(offsets_.at(record), end_);
    return {begin, std::clamp(offsets_.at(record + 1), begin, end_)};
  }
  /// The extent of all records.
  base::Extent whole() const { return {std::min(offsets_.at(0), end_), end_}; }
  /// The first record that begins at `offset` or later; count() if there is none.
  std::uint64_t first_from(std::uint64_t offset) const {
    return std::min(offsets_.first_from(offset), count());
  }
  const Fingerprint& fingerprint() const { return fingerprint_; }
  std::uint64_t bytes() const { return image_.size(); }

  bool has_names() const { return names_.count() != 0; }
  /// The name relative to the indexed or packed directory; empty without names.
  std::string_view name(std::uint64_t record) const;
  /// Permissions and time of the file that became the record; 0 if unknown.
  std::uint32_t mode(std::uint64_t record) const { return element<std::uint32_t>(modes_, record); }
  std::int64_t modification_time(std::uint64_t record) const {
    return element<std::int64_t>(times_, record);
  }
  bool has_sums() const { return !sums_.empty(); }
  /// The low half of the XXH64 of the record.
  std::uint32_t sum(std::uint64_t record) const { return element<std::uint32_t>(sums_, record); }

  /// The bucketing of a fused shuffle's output. The functions below are for such files only.
  const std::optional<Bucketing>& bucketing() const { return bucketing_; }
  std::uint64_t runs() const { return runs_.size() / sizeof(BucketRun); }
  BucketRun run(std::uint64_t number) const { return element<BucketRun>(runs_, number); }
  /// The offset of the record in the input of the shuffle.
  std::uint64_t identity(std::uint64_t record) const { return identities_.at(record); }

  /// True for a file of groups of records: count() and span() are then of groups.
  bool has_groups() const { return firsts_.count() != 0; }
  /// The number of a group's first record; of group count(), the number of all records.
  std::uint64_t first_of_group(std::uint64_t group) const { return firsts_.at(group); }

  /// EINVAL if a section other than the checksums of records is damaged. `by_record`: ignores the
  /// section of the offsets, too, because the checksums of the records detect its damage.
  base::Status verify_sections(bool by_record = false) const;
  /// As verify_sections(); also EINVAL if records or groups are not in order.
  base::Status verify() const;
  const std::string& path() const { return path_; }

 private:
  static base::Result<Index> read_object(const Disk& object, base::Extent where);
  static base::Result<Index> parse(std::span<const std::byte> image,
                                   std::shared_ptr<const void> owner, const std::string& path);
  base::Status verify_section(std::size_t number) const;
  base::Status take_sections();
  base::Status take_section(std::size_t number);
  base::Status take_column(Column& out, std::span<const std::byte> bytes, std::uint64_t count,
                           const char* damage);
  bool take_runs(std::span<const std::byte> bytes);
  base::Error damage_error(const char* what) const;
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
  std::uint64_t recorded_ = 0;  ///< the count in the head
  std::uint64_t end_ = 0;       ///< of the last record
  Fingerprint fingerprint_;
  std::optional<Bucketing> bucketing_;
  Column offsets_, names_, identities_, firsts_;
  std::span<const std::byte> name_bytes_, modes_, times_, sums_, runs_;
};

/// Builds an index from records in the order of the file.
class IndexBuilder {
 public:
  /// Adds a record that begins at `offset`.
  void begin(std::uint64_t offset) { offsets_.add(offset); }
  /// Sets name, permissions and time of the last record; for all records or for none.
  void name(std::string_view name, std::uint32_t mode, std::int64_t modified);
  void sum(std::uint32_t sum);
  /// For a file whose records are in buckets and have no names: first the bucketing, then the
  /// bucket before each run, and the identity of each record.
  void bucketing(const Bucketing& bucketing);
  void run(std::uint64_t bucket);
  void identity(std::uint64_t identity) { identities_.add(identity); }
  /// For a file of groups of records: the number of each group's first record, at the end the
  /// number of all records.
  void group(std::uint64_t first) { firsts_.add(first); }
  /// Removes the begins of all records and returns them, compressed, for append_begins() of another
  /// builder. Only for records without names, checksums, buckets and groups.
  std::vector<std::uint64_t> take_begins();
  void append_begins(const std::vector<std::uint64_t>& taken);
  std::uint64_t count() const { return offsets_.count(); }
  /// Bytes of memory so far.
  std::uint64_t bytes() const;
  /// Reserves memory for the expected records of a file with buckets.
  void expect_bucketed(std::uint64_t records, std::uint64_t bytes);
  /// The index file's bytes. `end`: of the last record.
  std::vector<std::byte> finish(Kind kind, std::uint64_t end, const Fingerprint& fingerprint);

 private:
  ColumnBuilder offsets_, names_, identities_, firsts_;
  std::vector<std::byte> name_bytes_, modes_, times_, sums_, runs_;
};

}  // namespace pario::records
