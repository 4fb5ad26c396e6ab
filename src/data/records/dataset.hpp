// Records by number, from files of any format.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/check.hpp"
#include "data/records/disk.hpp"
#include "data/records/formats.hpp"
#include "data/records/index.hpp"
#include "data/records/index_files.hpp"
#include "data/records/team.hpp"

namespace pario::records {

/// A file of records, or a directory, open for reading. Any thread may use it, also after a fork:
/// reads keep no state.
class Dataset {
 public:
  /// Opens a file with its index (open_index). `verify`: compares the checksums of the index now,
  /// and those of each record that is read as a whole, if it has any.
  static base::Result<Dataset> open(const std::string& path, bool verify = true);
  /// Opens a file with a given index.
  static base::Result<Dataset> open(const std::string& path, Index index, bool verify = true);

  const Index& index() const { return index_; }
  const Format& format() const { return format_of(index_.kind()); }
  const std::string& path() const { return path_; }
  std::uint64_t count() const { return index_.count(); }
  /// The open file; null: a directory.
  const std::shared_ptr<const Disk>& file() const { return file_; }
  /// Reads a part of a record into `out`, without checksums; ESTALE: the file has become shorter.
  /// `record` < count(), `offset` within it.
  base::Status read(std::uint64_t record, std::uint64_t offset, std::span<std::byte> out) const;
  /// Reads a whole stored record; returns the extent of its data. EBADMSG: it is damaged.
  base::Result<base::Extent> read(std::uint64_t record, std::span<std::byte> out) const;
  /// ESTALE if the open local file was modified since it was indexed. Bytes may be appended: of a
  /// file of another size, both ends of the records are compared.
  base::Status check_unchanged() const;
  /// EBADMSG if the bytes of a whole record, read by other means, are damaged.
  base::Status check(std::uint64_t record, std::span<const std::byte> bytes) const;

 private:
  Dataset(std::string path, Index index, bool checked)
      : path_(std::move(path)), index_(std::move(index)), checked_(checked) {}

  std::string path_;
  Index index_;
  bool checked_;                      ///< records have checksums, which are compared
  std::shared_ptr<const Disk> file_;  ///< null: a directory
};

struct Damage {
  std::uint64_t record;
  std::string what;
};
/// Reads all records and compares all checksums; returns at most `most` damaged records.
base::Result<std::vector<Damage>> verify(const Dataset& dataset, unsigned threads, std::size_t most,
                                         const Show& show = {});

}  // namespace pario::records
