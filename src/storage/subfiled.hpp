// The member that is one file to those who ask and N files on disk: `path` itself, empty, and path.subfiles/ with `map` and the files 0 to
// N - 1, each made by the first write that touches it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "storage/storage.hpp"

namespace pario::storage {

/// A descriptor that is closed when it is no longer needed.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& from) noexcept : number_(std::exchange(from.number_, -1)) {}
  Descriptor& operator=(Descriptor&& from) noexcept {
    std::swap(number_, from.number_);
    return *this;
  }
  ~Descriptor();
  int number() const { return number_; }

 private:
  int number_;
};

bool is_removed(int descriptor);

std::string directory_of_subfiles(const std::string& path);
std::string path_of_subfile(const std::string& path, std::uint32_t number);

/// Bytes in one of the files on disk; none where it was never written to.
base::Result<std::uint64_t> size_of_subfile(const std::string& path, std::uint32_t number);

/// The map of a path that consists of subfiles.
std::optional<layout::SubfileMap> read_map(const std::string& path);

/// The file of the map, locked by flock(2): shared by all who have the subfiles open, alone by who joins them.
struct HeldMap {
  Descriptor file;
  layout::SubfileMap map;
  bool locked;  ///< false: the file system has no such locks
};
/// Waits for a shared lock; EWOULDBLOCK where an exclusive one cannot be had at once, ENOENT where there is no map (any more), or none
/// that can be read.
base::Result<HeldMap> hold_map(const std::string& path, bool exclusive);
base::Status write_map(const std::string& path, const layout::SubfileMap& map);

/// Removes the map and the files it tells of, and nothing else; fine where there are none.
base::Status remove_subfiles(const std::string& path);

/// `named`: the file of the path itself, for locks. `held` is kept until it is closed.
std::unique_ptr<File> make_subfiled(const OpenRequest& request, std::unique_ptr<File> named, HeldMap held);

}  // namespace pario::storage
