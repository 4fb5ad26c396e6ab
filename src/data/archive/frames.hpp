// zstd frames, and the table behind the last one of a shard that says where each begins (zstd's
// published seekable format: a frame that decompressors skip).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"

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
  Bytes
      room_;  ///< for the longest frame so far: memory that is new each time costs more than a copy
};

struct FrameSize {
  std::uint32_t compressed = 0, plain = 0;
};

/// The skippable frame.
Bytes table_of(std::span<const FrameSize> frames);

/// Longer frames are decompressed in parts of this size, so that memory stays bounded.
inline constexpr std::size_t kLongestWhole = 16 << 20;

/// Decompressed bytes of a shard, and their place in its tar.
struct TarPart {
  base::Extent place;
  std::span<const std::byte> bytes;
};

/// A shard that is read. One thread may read at a time.
class Shard {
 public:
  /// Fails where the table is missing or does not fit the file: it was cut off.
  static base::Result<std::unique_ptr<Shard>> open(const std::string& path);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  std::size_t frames() const { return plain_.size() - 1; }
  /// The extent of a frame's bytes in the tar.
  base::Extent frame(std::size_t number) const { return {plain_[number], plain_[number + 1]}; }
  /// The frame that has this byte of the tar.
  std::size_t frame_at(std::uint64_t offset) const;
  std::uint64_t size() const { return plain_.back(); }
  /// Decompresses the bytes around one byte of the tar: its frame, or a part of a long one. Valid
  /// until the next call. A frame's checksum is checked when its last byte is read.
  base::Result<TarPart> read_part(std::uint64_t offset);
  /// Bytes of the tar, put together from frames.
  base::Status read(base::Extent where, std::byte* out);
  base::Error damaged(const char* what) const;

 private:
  Shard(std::string path, int descriptor);
  base::Status read_table();
  base::Result<std::span<const std::byte>> read_frame(std::size_t number);
  base::Status begin_stream(std::size_t number);
  base::Status read_input();
  base::Status decompress_next();
  base::Status finish_stream();
  base::Status check_size(std::uint64_t expected) const;
  base::Status read_exactly(std::uint64_t offset, std::span<std::byte> out) const;

  std::string path_;
  int descriptor_;
  ZSTD_DCtx_s* context_;
  std::vector<std::uint64_t> compressed_ = {0},
                             plain_ = {0};  ///< where each begins, and where the last ends
  Bytes packed_, frame_;

  /// A long frame that is decompressed part by part; the part is in `frame_`.
  struct Stream {
    bool open = false;
    std::size_t number = 0;   ///< of the frame
    std::uint64_t input = 0;  ///< place in the file of the bytes behind `packed_`
    std::size_t used = 0;     ///< bytes of `packed_`
    base::Extent place = {};  ///< of the part in the tar
  };
  Stream stream_;
};

}  // namespace pario::archive
