// A cache of blocks of objects in a directory of this node, which all its processes share.
//
// A file per block: its bytes, then a checksum of each piece of them, then the checksum of these.
// Its name has hashes of URL and version, so that no block is ever stale. A block is fetched by one
// thread of the node at a time, which locks a byte of a file; the kernel releases the locks of
// killed processes. Blocks get their names when they are complete. The least recently used ones are
// removed when the directory exceeds its limit. A public header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/base/base.hpp"
#include "core/file/objects.hpp"
#include "core/file/publication.hpp"

namespace pario::file {

class BlockCache {
 public:
  static constexpr std::uint64_t kBlock = 1 << 20, kPiece = 16 << 10;

  /// `most`: bytes of all blocks.
  BlockCache(std::string directory, std::uint64_t most);
  /// The cache of PARIO_BLOCK_CACHE, "DIRECTORY" or "DIRECTORY:SIZE"; null: the variable is not
  /// set. EINVAL: it has another form, or the size is too small for a block.
  static base::Result<std::shared_ptr<BlockCache>> of_environment();
  const std::string& directory() const { return directory_; }
  std::uint64_t most() const { return most_; }
  /// Bytes of the files of all blocks.
  std::uint64_t bytes() const;

  /// Fetches a range of an object.
  using Fetch = std::function<base::Status(std::uint64_t offset, std::span<std::byte> out)>;
  /// Reads a range within an object that has a version; bytes that are not cached are fetched, in
  /// whole blocks. An error of the directory is no error: the range is fetched.
  base::Status read(const std::string& url, const ObjectFacts& facts, std::uint64_t offset,
                    std::span<std::byte> out, const Fetch& fetch);

 private:
  struct Block {
    std::string path;
    base::Extent where;  ///< in the object
  };
  Block block_at(const std::string& url, const ObjectFacts& facts, std::uint64_t offset) const;
  base::Status read_block(const Block& block, std::uint64_t offset, std::span<std::byte> out,
                          const Fetch& fetch);
  void store(const Block& block, std::span<const std::byte> bytes);
  base::Result<Publication> reserve(const std::string& path, std::uint64_t bytes) const;
  std::uint64_t make_room(std::uint64_t needed) const;

  std::string directory_;
  std::uint64_t most_;
};

}  // namespace pario::file
