// Reads the tar of a shard from any place on, frame by frame.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/archive/frames.hpp"
#include "data/archive/header.hpp"

namespace pario::archive {

class TarStream {
 public:
  explicit TarStream(Shard& shard) : shard_(shard) {}

  /// Continues at an offset; frames in between are not decompressed.
  void seek(std::uint64_t offset) { at_ = offset; }
  std::uint64_t position() const { return at_; }
  /// The next bytes, at most `most` and at least one; valid until the next call.
  base::Result<std::span<const std::byte>> next(std::uint64_t most);
  /// Reads exactly `size` bytes.
  base::Status read(std::string& out, std::uint64_t size);
  base::Error damage_error(const char* what) const { return shard_.damage_error(what); }

 private:
  Shard& shard_;
  std::uint64_t at_ = 0;
  base::Extent held_;  ///< of the tar, in `frame_`
  std::span<const std::byte> frame_;
};

/// Reads the extents of a file that have data; sorted and within the file. `tar` is after the
/// header of the file; then at the first byte of data.
base::Status read_data_places(const Header& header, TarStream& tar,
                              std::vector<base::Extent>& data);

}  // namespace pario::archive
