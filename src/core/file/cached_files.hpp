// The files of a cache in a directory: they are listed, and the least recently used ones removed. A
// file's time of modification is that of its last noted use. A public header.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pario::file {

struct CachedFile {
  std::string path;
  std::uint64_t bytes;
  std::int64_t used;  ///< nanoseconds since 1970
};
/// Lists the files of a directory with a suffix; empty if it cannot be listed. Other processes may
/// remove some meanwhile.
std::vector<CachedFile> list_cached_files(const std::string& directory, std::string_view suffix);
/// Returns the sum of the bytes of files.
std::uint64_t sum_of_bytes(const std::vector<CachedFile>& files);
/// Removes the least recently used files until the others have at most so many bytes; returns the
/// sum of the others, also of those of other users that cannot be removed.
std::uint64_t remove_least_recently_used(std::vector<CachedFile> files, std::uint64_t most);
/// Notes a use of a file if the last noted one is older than `interval` nanoseconds.
void note_use(const std::string& path, std::int64_t interval);
/// True if a time is more than `age` nanoseconds ago.
bool is_older(std::int64_t time, std::int64_t age);

}  // namespace pario::file
