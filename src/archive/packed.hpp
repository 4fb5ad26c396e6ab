// What `pack` has made, and its members by name.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "archive/frames.hpp"
#include "archive/index.hpp"

namespace pario::archive {

/// An archive that is read. May be used by several threads.
class Archive {
 public:
  static base::Result<Archive> open(const std::string& directory);

  const std::string& path() const { return path_; }
  const Index& index() const { return index_; }
  std::string shard_path(std::uint32_t number) const { return path_ + "/" + shard_name(number); }
  /// The bytes of a file, its holes as zeros; of other members none. Decompresses the frames that have them, no more.
  base::Result<std::string> read(std::size_t member);

 private:
  Archive(std::string path, Index index) : path_(std::move(path)), index_(std::move(index)), state_(std::make_unique<State>()) {}
  base::Result<Shard*> shard(std::uint32_t number);
  /// A part of a member as it is stored, from its header on.
  base::Result<std::string> stored(const Row& row, base::Extent part);
  /// What is behind the header of a member, which has to be the one that the index names.
  base::Result<std::string> checked(std::size_t member, Header& header);

  /// Shards that were read before stay open.
  struct State {
    std::mutex mutex;
    std::vector<std::unique_ptr<Shard>> shards;
  };
  std::string path_;
  Index index_;
  std::unique_ptr<State> state_;
};

}  // namespace pario::archive
