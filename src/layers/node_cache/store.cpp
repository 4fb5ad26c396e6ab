#include "layers/node_cache/store.hpp"

#include <fcntl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>

#include "core/hints/hints.hpp"

namespace pario::node_cache::store {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
/// The part of the free space that one file may take.
constexpr std::uint64_t kShareOfSpace = 2;

/// Returns the directory of the settings; empty: it is none of the user's.
std::string_view find_directory() {
  const char* path = hints::of_process().node_cache.data;
  struct stat status{};
  const bool exists = *path == '/' && base::status_of(path, status) == 0 &&
                      S_ISDIR(status.st_mode) &&
                      status.st_uid == static_cast<uid_t>(base::system_call(SYS_geteuid));
  return exists ? path : std::string_view();
}

void add_hex(base::TextBuffer& out, std::uint64_t number) {
  for (int shift = 60; shift >= 0; shift -= 4) out.add(kHexDigits[(number >> shift) & 15]);
}

}  // namespace

std::string_view directory() {
  static const std::string_view found = find_directory();
  return found;
}
std::string_view trees() { return hints::of_process().cached_trees.view(); }

std::string_view parent_of(std::string_view name) {
  return name.substr(0, std::max<std::size_t>(name.rfind('/'), 1));
}

void add_place(base::TextBuffer& out, std::string_view part, std::string_view name) {
  out.add(directory()).add('/').add(part).add('/');
  add_hex(out, base::xxh64(name));
  add_hex(out, base::xxh64(name, 1));
}

void add_temporary(base::TextBuffer& out, std::string_view part) {
  static constinit std::atomic<std::uint32_t> number{0};
  out.add(directory()).add('/').add(part).add('/');
  out.add(base::system_call(SYS_getpid)).add('-').add(number.fetch_add(1));
}

bool has_space_for(std::uint64_t bytes) {
  struct statfs room{};
  base::Text<PATH_MAX> place;
  return base::system_call(SYS_statfs, place.add(directory()).c_str(), &room) >= 0 &&
         bytes <= room.f_bavail * static_cast<std::uint64_t>(room.f_bsize) / kShareOfSpace;
}

// The lock of a name is a byte of the file, so that it ends with the process that has it.
Lock::Lock(std::string_view name) : byte_(base::xxh64(name) >> 2) {
  base::Text<PATH_MAX> place;
  place.add(directory()).add("/locks");
  descriptor_ = base::open_file(place.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) base::lock_byte(descriptor_, F_WRLCK, byte_, true);
}

Lock::~Lock() {
  if (descriptor_ < 0) return;
  // A child that was forked meanwhile shares the open description, and so the lock.
  base::lock_byte(descriptor_, F_UNLCK, byte_, false);
  base::close_file(descriptor_);
}

}  // namespace pario::node_cache::store
