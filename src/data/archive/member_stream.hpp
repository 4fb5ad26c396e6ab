// The bytes of one file of an archive, piece by piece, in bounded memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/archive/packed.hpp"
#include "data/archive/stream.hpp"

namespace pario::archive {

/// Reads the header of a member, which must be the one that the index names. `tar`, the stream of
/// its shard, is then at the bytes after it.
base::Status read_member_header(const Archive& archive, std::size_t member, Shard& shard,
                                TarStream& tar, Header& header);

/// Reads a file of an archive. For one thread. The archive must outlive it.
class MemberStream {
 public:
  /// Opens a file, or the target of a hard link. EIO if the member differs from the index, EINVAL
  /// if it is no file.
  static base::Result<std::unique_ptr<MemberStream>> open(const Archive& archive,
                                                          std::size_t member);
  /// Bytes of the file.
  std::uint64_t size() const { return header_.size; }
  /// The next bytes, holes as zeros; none at the end. Valid until the next call.
  base::Result<std::span<const std::byte>> next();

 private:
  MemberStream(const Archive& archive, std::size_t member) : archive_(archive), member_(member) {}
  base::Status read_header();
  base::Status follow_link();

  const Archive& archive_;
  std::size_t member_;
  std::unique_ptr<Shard> shard_;
  std::unique_ptr<TarStream> tar_;
  Header header_;
  std::vector<base::Extent> data_;
  std::size_t piece_ = 0;  ///< the first piece of `data_` that is not read completely
  std::uint64_t at_ = 0;   ///< in the file
};

}  // namespace pario::archive
