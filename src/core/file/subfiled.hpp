// The subfiled member: one file to its users and N files on disk. `path` itself is empty;
// path.subfiles/ has `map` and the files 0 to N - 1, each created by the first write to it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/descriptor.hpp"
#include "core/file/file.hpp"

namespace pario::file {

using base::Descriptor;

bool is_removed(int descriptor);

std::string directory_of_subfiles(const std::string& path);
std::string path_of_subfile(const std::string& path, std::uint32_t number);

/// Bytes in one of the files on disk; 0 if it was never written.
base::Result<std::uint64_t> size_of_subfile(const std::string& path, std::uint32_t number);
/// The least size of the whole that the sizes of the files on disk imply.
base::Result<std::uint64_t> size_of_subfiles(const std::string& path,
                                             const layout::SubfileMap& map);
/// EIO for a file on disk with fewer bytes than a whole of `size` bytes implies. Files that lie
/// behind the end of the whole need not exist.
base::Status require_complete(const std::string& path, const layout::SubfileMap& map,
                              std::uint64_t size);

/// The map of a path that consists of subfiles.
std::optional<layout::SubfileMap> read_map(const std::string& path);

/// The file of the map, locked by flock(2): shared by processes with open subfiles, exclusive while
/// they are joined.
struct LockedMap {
  Descriptor file;
  layout::SubfileMap map;
  bool locked;  ///< false: the file system has no such locks
};
/// Waits for a shared lock. EWOULDBLOCK if an exclusive one is not available at once, ENOENT if
/// there is no map (any more), EBADMSG if it is damaged. An empty one counts as missing if the lock
/// is shared: its writer may have been killed before the first subfile.
base::Result<LockedMap> lock_map(const std::string& path, bool exclusive);
base::Status write_map(const std::string& path, const layout::SubfileMap& map);
/// Records a smaller size in the map, before a file on disk becomes shorter. Does nothing without a
/// map.
base::Status lower_recorded_size(const std::string& path, std::uint64_t size);

/// Removes the map and the files it lists, and nothing else; no error if there are none.
base::Status remove_subfiles(const std::string& path);

/// `named`: the file of the path itself, for locks. `map` stays locked until it is closed.
std::unique_ptr<File> make_subfiled(const OpenRequest& request, std::unique_ptr<File> named,
                                    LockedMap map);

}  // namespace pario::file
