// Files whose writes are kept in memory, for tests.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine_support.hpp"

namespace pario::engine {

inline constexpr int kOne[] = {0}, kFourOfOne[] = {0, 0, 0, 0};

inline OpenRequest behind(const std::string& path, std::uint64_t bound = 1 << 16) {
  OpenRequest request = fresh(path);
  request.hints.pario_write_behind = bound;
  request.hints.pario_write_behind_delay = 0;
  return request;
}

inline OpenRequest merging(const std::string& path, std::uint64_t bound = 1 << 16) {
  OpenRequest request = fresh(path);
  request.hints.pario_merge_collectives = bound;
  return request;
}

inline void write_bytes(SharedFile& file, std::uint64_t offset, std::uint64_t length,
                        With with = With::alone) {
  std::vector<std::byte> bytes = bytes_at(offset, length);
  const auto written = file.write(plain(bytes, offset), with, "write_at");
  ASSERT_TRUE(written.ok()) << written.error().text();
  EXPECT_EQ(*written, length);
}

inline std::vector<std::byte> read_bytes(SharedFile& file, std::uint64_t offset,
                                         std::uint64_t length, With with = With::alone) {
  std::vector<std::byte> bytes(length);
  const auto read = file.read(plain(bytes, offset), with, "read_at");
  EXPECT_TRUE(read.ok()) << read.error().text();
  bytes.resize(read.ok() ? *read : 0);
  return bytes;
}

/// Opens a file that fails to write [begin, end) on this rank if `mine`, with that number, while
/// `broken`.
inline Opener breaking(bool mine, base::Extent where, int number,
                       const std::shared_ptr<std::atomic<bool>>& broken) {
  return [=](const file::OpenRequest& request) -> base::Result<std::unique_ptr<file::File>> {
    auto file = file::open(request);
    if (!file || !mine) return file;
    return file::make_faulty(std::move(*file), [=](const char* name, base::Extent extent) {
      const bool hit = *broken && std::string_view(name) == "write" &&
                       !base::intersection(extent, where).empty();
      return hit ? file::Fault{file::Fault::Kind::error, number} : file::Fault{};
    });
  };
}

inline std::shared_ptr<std::atomic<bool>> broken_disk() {
  return std::make_shared<std::atomic<bool>>(true);
}

}  // namespace pario::engine
