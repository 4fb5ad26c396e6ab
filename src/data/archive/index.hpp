// The index of an archive: all members with their places, sorted by the bytes of their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/base.hpp"
#include "data/archive/header.hpp"

namespace pario::archive {

inline constexpr const char* kIndex = "index";
/// The file name of a shard, such as "00042.tar.zst".
std::string shard_name(std::uint32_t number);

/// A member in the file: little-endian, without gaps (docs/move.md).
struct Row {
  std::uint64_t name = 0;    ///< offset of its name in the names
  std::uint64_t offset = 0;  ///< of its header in the tar of its shard
  std::uint64_t stored = 0;  ///< bytes after the header
  std::uint64_t size = 0;    ///< of the file
  std::int64_t modified = 0;
  std::uint32_t name_size = 0, shard = 0;
  std::uint32_t header = 0;  ///< bytes of the header
  std::uint32_t mode = 0;    ///< type and permissions, as st_mode
  Type type = Type::file;
  std::uint8_t sparse = 0;
  std::uint8_t nothing[6] = {};

  /// The extent of the header and the bytes in the tar.
  base::Extent place() const {
    return base::Extent::at(offset, header + base::round_up(stored, kBlock));
  }
  /// True if the member lies within a tar of `tar` bytes; any numbers are safe.
  bool is_within(std::uint64_t tar) const {
    return offset <= tar && header > 0 && header <= tar - offset &&
           stored <= tar - offset - header && place().end <= tar;
  }
};
static_assert(sizeof(Row) == 64);

/// Writes an index. The rows may be in any order.
base::Status write_index(const std::string& path, std::vector<Row> rows, const std::string& names,
                         std::uint32_t shards);

/// A mapped index: opening it reads only few bytes.
class Index {
 public:
  static base::Result<Index> open(const std::string& path);
  Index(Index&& other) noexcept;
  Index& operator=(Index&& other) noexcept;
  ~Index();

  std::size_t count() const;
  std::uint32_t shards() const;
  const Row& row(std::size_t number) const { return rows_[number]; }
  /// The name of a member; empty if the row is damaged.
  std::string_view name(std::size_t number) const;
  std::optional<std::size_t> find(std::string_view name) const;
  /// Compares the index with its checksum.
  base::Status verify() const;

 private:
  Index() = default;
  std::string path_;
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  const Row* rows_ = nullptr;
  std::string_view names_;
};

}  // namespace pario::archive
