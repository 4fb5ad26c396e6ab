// An archive that `pack` has made, and its members by name.
#pragma once

#include <string>
#include <utility>

#include "data/archive/frames.hpp"
#include "data/archive/index.hpp"

namespace pario::archive {

/// An archive opened for reading. Several threads may use it.
class Archive {
 public:
  static base::Result<Archive> open(const std::string& directory);

  const std::string& path() const { return path_; }
  const Index& index() const { return index_; }
  std::string shard_path(std::uint32_t number) const { return path_ + "/" + shard_name(number); }
  /// The bytes of a file, holes as zeros. Decompresses only the frames of the file. ENOMEM if
  /// memory for all bytes is missing: MemberStream needs little.
  base::Result<std::string> read(std::size_t member) const;

 private:
  Archive(std::string path, Index index) : path_(std::move(path)), index_(std::move(index)) {}
  std::string path_;
  Index index_;
};

}  // namespace pario::archive
