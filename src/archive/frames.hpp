// zstd frames, and the table behind the last one of a shard that says where each begins (zstd's published seekable format: a frame that
// decompressors skip).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/base.hpp"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace pario::archive {

using Bytes = std::vector<std::byte>;

/// Compresses with a checksum. For one thread.
class Compressor {
 public:
  explicit Compressor(int level);
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  /// A frame of its own.
  base::Result<Bytes> frame(std::span<const std::byte> data);

 private:
  ZSTD_CCtx_s* context_;
  int level_;
  Bytes room_;  ///< for the longest frame so far: memory that is new each time costs more than a copy
};

struct FrameSize {
  std::uint32_t compressed = 0, plain = 0;
};

/// The skippable frame.
Bytes table_of(std::span<const FrameSize> frames);

/// A shard that is read. One thread may read at a time.
class Shard {
 public:
  /// Fails where the table is missing or does not fit the file: it was cut off.
  static base::Result<std::unique_ptr<Shard>> open(const std::string& path);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  std::size_t frames() const { return plain_.size() - 1; }
  /// Where a frame's bytes lie in the tar.
  base::Extent frame(std::size_t number) const { return {plain_[number], plain_[number + 1]}; }
  /// The frame that has this byte of the tar.
  std::size_t frame_at(std::uint64_t offset) const;
  std::uint64_t size() const { return plain_.back(); }
  /// Decompressed and checked; valid until the next call.
  base::Result<std::span<const std::byte>> read_frame(std::size_t number);
  /// Bytes of the tar, put together from frames.
  base::Status read(base::Extent where, std::byte* out);
  base::Error damaged(const char* what) const;

 private:
  Shard(std::string path, int descriptor);
  base::Status read_table();
  base::Status check_size(std::uint64_t expected) const;
  base::Status read_exactly(std::uint64_t offset, std::span<std::byte> out) const;

  std::string path_;
  int descriptor_;
  ZSTD_DCtx_s* context_;
  std::vector<std::uint64_t> compressed_ = {0}, plain_ = {0};  ///< where each begins, and where the last ends
  Bytes packed_, frame_;
};

}  // namespace pario::archive
