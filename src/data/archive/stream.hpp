// The tar of a shard from one member on, frame by frame.
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

  /// Continues at a place; frames that were passed over are not decompressed.
  void seek(std::uint64_t offset) { at_ = offset; }
  std::uint64_t position() const { return at_; }
  /// The next bytes, at most so many and at least one; valid until the next call.
  base::Result<std::span<const std::byte>> next(std::uint64_t most);
  /// Exactly so many bytes.
  base::Status read(std::string& out, std::uint64_t size);
  base::Error damaged(const char* what) const { return shard_.damaged(what); }

 private:
  Shard& shard_;
  std::uint64_t at_ = 0;
  base::Extent held_;  ///< of the tar, in `frame_`
  std::span<const std::byte> frame_;
};

/// Reads where the bytes of a file lie, of which `tar` stands behind the header; then it stands at
/// the first of them. Pieces are in order and within the file.
base::Status read_data_places(const Header& header, TarStream& tar,
                              std::vector<base::Extent>& data);

}  // namespace pario::archive
