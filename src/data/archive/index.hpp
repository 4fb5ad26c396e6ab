// The index of an archive: every member, by names in the order of bytes, and where it is.
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
/// "00042.tar.zst"
std::string shard_name(std::uint32_t number);

/// A member as the file has it: little-endian, without gaps. docs/move.md describes it.
struct Row {
  std::uint64_t name = 0;    ///< where its name begins
  std::uint64_t offset = 0;  ///< of its header in the tar of its shard
  std::uint64_t stored = 0;  ///< bytes behind the header
  std::uint64_t size = 0;    ///< of the file
  std::int64_t modified = 0;
  std::uint32_t name_size = 0, shard = 0;
  std::uint32_t header = 0;  ///< bytes of it
  std::uint32_t mode = 0;    ///< type and permissions, as stat has them
  Type type = Type::file;
  std::uint8_t sparse = 0;
  std::uint8_t nothing[6] = {};

  /// Header and all.
  base::Extent place() const {
    return base::Extent::at(offset, header + base::round_up(stored, kBlock));
  }
  /// Whether a tar of so many bytes has it, whatever numbers it is made of.
  bool is_within(std::uint64_t tar) const {
    return offset <= tar && header > 0 && header <= tar - offset &&
           stored <= tar - offset - header && place().end <= tar;
  }
};
static_assert(sizeof(Row) == 64);

/// The file: rows by name, which are given in any order.
base::Status write_index(const std::string& path, std::vector<Row> rows, const std::string& names,
                         std::uint32_t shards);

/// An index that is looked at where it lies: opening it reads next to nothing.
class Index {
 public:
  static base::Result<Index> open(const std::string& path);
  Index(Index&& other) noexcept;
  Index& operator=(Index&& other) noexcept;
  ~Index();

  std::size_t count() const;
  std::uint32_t shards() const;
  const Row& row(std::size_t number) const { return rows_[number]; }
  /// Empty where the row is damaged.
  std::string_view name(std::size_t number) const;
  std::optional<std::size_t> find(std::string_view name) const;
  /// All of it is as it was written.
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
