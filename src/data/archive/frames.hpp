// zstd frames, and the table of their sizes at the end of a shard (the seekable format that zstd
// publishes: a frame that decompressors skip).
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

/// Compresses data to frames with checksums. For one thread.
class Compressor {
 public:
  explicit Compressor(int level);
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  /// Compresses `data` to one frame.
  base::Result<Bytes> frame(std::span<const std::byte> data);

 private:
  ZSTD_CCtx_s* context_;
  int level_;
  Bytes room_;  ///< for the longest frame so far; reused, because new memory costs more than a copy
};

struct FrameSize {
  std::uint32_t compressed = 0, plain = 0;
};

/// The table of the sizes of frames, as a skippable frame.
Bytes table_of(std::span<const FrameSize> frames);

/// Longer frames are decompressed in parts of this size, so that memory stays bounded.
inline constexpr std::size_t kLongestWhole = 16 << 20;

/// Decompressed bytes of a shard, and their place in its tar.
struct TarPart {
  base::Extent place;
  std::span<const std::byte> bytes;
};

/// A shard opened for reading. One thread at a time may use it.
class Shard {
 public:
  /// Opens a shard. An error if its table is missing or does not match the file size (truncation).
  static base::Result<std::unique_ptr<Shard>> open(const std::string& path);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  std::size_t frames() const { return plain_.size() - 1; }
  /// The extent of a frame's bytes in the tar.
  base::Extent frame(std::size_t number) const { return {plain_[number], plain_[number + 1]}; }
  /// The number of the frame that contains this byte of the tar.
  std::size_t frame_at(std::uint64_t offset) const;
  std::uint64_t size() const { return plain_.back(); }
  /// Decompresses the bytes around one byte of the tar: its frame, or a part of a long one. Valid
  /// until the next call. A frame's checksum is checked when its last byte is read.
  base::Result<TarPart> read_part(std::uint64_t offset);
  /// Reads bytes of the tar, from several frames if needed.
  base::Status read(base::Extent where, std::byte* out);
  base::Error damage_error(const char* what) const;

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
                             plain_ = {0};  ///< the offset of each frame; last the end
  Bytes packed_, frame_;

  /// A long frame that is decompressed part by part; the current part is in `frame_`.
  struct Stream {
    bool open = false;
    std::size_t number = 0;   ///< of the frame
    std::uint64_t input = 0;  ///< file offset of the bytes after `packed_`
    std::size_t used = 0;     ///< decompressed bytes of `packed_`
    base::Extent place = {};  ///< of the part in the tar
  };
  Stream stream_;
};

}  // namespace pario::archive
