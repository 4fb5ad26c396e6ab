// The files that this process uses, as /proc shows them.
#include "layers/buffers/buffers.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "core/base/base.hpp"

namespace pario::buffers {
namespace {

/// The inode of a line of /proc/self/maps, its fifth word; 0: no file.
ino_t inode_of(std::string_view line) {
  for (int word = 0; word < 4; ++word) {
    line.remove_prefix(std::min(line.find(' '), line.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  }
  ino_t inode = 0;
  std::from_chars(line.data(), line.data() + line.size(), inode);
  return inode;
}

}  // namespace

bool has_descriptor(bool (*fits)(int descriptor, const void* argument), const void* argument) {
  const int folder = base::open_file("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  alignas(dirent64) char entries[1024];
  long bytes = folder;
  bool found = folder < 0;
  while (!found && (bytes = base::read_entries(folder, entries, sizeof entries)) > 0)
    for (long at = 0; at < bytes && !found;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      const std::string_view name = entry->d_name;
      int descriptor = 0;
      const auto parsed = std::from_chars(name.data(), name.data() + name.size(), descriptor);
      found = parsed.ec == std::errc{} && descriptor != folder && fits(descriptor, argument);
      at += entry->d_reclen;
    }
  if (folder >= 0) base::close_file(folder);
  return found || bytes < 0;
}

bool is_mapped(ino_t inode) {
  constexpr std::size_t kLineBytes = 512;  // the end of a longer line, a path, is cut off
  const int maps = base::open_file("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return true;
  char text[2 * kLineBytes];
  std::size_t size = 0;
  bool found = false;
  long bytes = 0;
  while (!found &&
         (bytes = base::system_call(SYS_read, maps, text + size, sizeof text - size)) > 0) {
    size += static_cast<std::size_t>(bytes);
    std::string_view rest(text, size);
    for (std::size_t end = 0; !found && (end = rest.find('\n')) != rest.npos;) {
      found = inode_of(rest.substr(0, end)) == inode;
      rest.remove_prefix(end + 1);
    }
    size = std::min(rest.size(), kLineBytes);
    std::memmove(text, rest.data(), size);
  }
  base::close_file(maps);
  return found || bytes < 0;
}

}  // namespace pario::buffers
