// What is shuffled: one or several files, seen as one stretch of bytes.
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

/// Any number of Readers may use it at a time.
class Source {
 public:
  /// Files of one format, one behind the other. A last line without an end is given one. Lines may
  /// have indices (open_index), one that is out of date counts as none; other formats need them.
  static base::Result<Source> open(const std::vector<std::string>& paths, Kind kind,
                                   Caching caching);

  std::uint64_t size() const { return size_; }
  Kind kind() const { return kind_; }
  /// Where records begin is known without a look at the data.
  bool indexed() const { return indexed_; }
  /// Of all files; of lines without an index, which nobody has counted, what the first ones let
  /// expect.
  std::uint64_t records() const { return records_; }
  /// Calls `visit` for each record that begins in `where`, in their order; of an indexed source.
  void visit(base::Extent where, const std::function<void(const Located&)>& visit) const;
  /// The record that begins at `begin` and is not empty; of an indexed source.
  Located locate(std::uint64_t begin) const;
  /// Of the only file; null: it has none, or there are several.
  const Index* index() const;
  /// EINVAL: an index is damaged.
  base::Status verify_indices() const;
  /// The files are as they were when they were opened.
  base::Status unchanged() const;

 private:
  friend class Reader;
  /// [begin, begin + length) are these bytes of a file, or the end that its last line lacks.
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

/// Reads a Source into memory of its own; one thread at a time.
class Reader {
 public:
  /// At most `most` bytes at a time.
  static base::Result<Reader> make(const Source& source, std::uint64_t most);
  /// Good until the next call. `where` lies within the source.
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
