// The input of a shuffle: one or several files, seen as one range of bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/disk.hpp"
#include "data/records/formats.hpp"
#include "data/records/index.hpp"

namespace pario::records {

/// A record of a Source.
struct Located {
  base::Extent where;            ///< in the source
  const Index* index = nullptr;  ///< of its file
  std::uint64_t number = 0;      ///< in its file
  const std::string* path = nullptr;
};

/// The files of an input. Any number of Readers may use it at a time.
class Source {
 public:
  /// Opens files of one format, one after the other. A last line without a line feed gets one.
  /// Other formats than lines need indexes (open_index); a stale index of lines is ignored.
  static base::Result<Source> open(const std::vector<std::string>& paths, Kind kind,
                                   Caching caching);

  std::uint64_t size() const { return size_; }
  Kind kind() const { return kind_; }
  /// True if the offsets of records are known without reading the data.
  bool is_indexed() const { return indexed_; }
  /// The number of records of all files; for lines without an index an estimate from the first
  /// ones.
  std::uint64_t records() const { return records_; }
  /// Calls `visit` for each record that begins in `where`, in order. For an indexed source.
  void visit(base::Extent where, const std::function<void(const Located&)>& visit) const;
  /// The record that begins at `begin` and is not empty. For an indexed source.
  Located locate(std::uint64_t begin) const;
  /// The index of the only file; null: it has none, or there are several files.
  const Index* index() const;
  /// EINVAL: an index is damaged.
  base::Status verify_indices() const;
  /// An Error if a file has changed since it was opened.
  base::Status check_unchanged() const;

 private:
  friend class Reader;
  /// A range of the source: bytes of a file, or the missing line feed of its last line.
  struct Part {
    std::uint64_t begin, length;
    const Disk* file;  ///< null: `text`
    std::uint64_t offset;
    std::string text;
    std::optional<Index> index;
  };
  struct Input {
    Disk file;
    std::int64_t modified;
    std::uint64_t size;
  };

  base::Status add(const std::string& path, Caching caching);
  base::Status add_lines(const Input& input);
  void estimate(std::uint64_t size, const std::vector<std::byte>& sample);
  base::Status add_indexed(const Input& input);
  void visit_part(std::size_t number, const Index& index, base::Extent where,
                  const std::function<void(const Located&)>& visit) const;
  void add_part(const Disk* file, base::Extent where, std::string text = {},
                std::optional<Index> index = {});
  std::size_t part_at(std::uint64_t offset) const;

  Kind kind_ = Kind::lines;
  bool indexed_ = true;
  std::vector<std::unique_ptr<Input>> inputs_;
  std::vector<Part> parts_;
  std::uint64_t size_ = 0, records_ = 0;
};

/// Reads a Source into its own memory. One thread at a time.
class Reader {
 public:
  /// Makes a reader of at most `most` bytes at a time.
  static base::Result<Reader> make(const Source& source, std::uint64_t most);
  /// Reads a range within the source. Valid until the next call.
  base::Result<std::span<const std::byte>> read(base::Extent where);
  std::uint64_t most() const { return most_; }

 private:
  Reader(const Source& source, std::uint64_t most, Buffer memory)
      : source_(&source), most_(most), memory_(std::move(memory)) {}
  base::Result<std::span<std::byte>> fetch(const Source::Part& part, base::Extent where,
                                           std::span<std::byte> room);

  const Source* source_;
  std::uint64_t most_;
  Buffer memory_, scratch_;
};

}  // namespace pario::records
