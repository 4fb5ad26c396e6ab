#include "stream/children.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <charconv>
#include <mutex>
#include <string_view>

#include "base/base.hpp"

namespace pario::stream::children {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kLeastDescriptor = 1000;  // out of the program's way

using Page = std::atomic<std::uint64_t>;  // not 0: copies were handed on

/// The shared page as this process, the parent, has it: a memory file, which others map.
struct Shared {
  int descriptor = -1;
  ino_t inode = 0;
  Page* page = nullptr;  ///< during a fork
};

constinit std::mutex mutex;
constinit Shared shared{};
constinit Fate last{Fate::gone};

constexpr std::size_t kMostInherited = 8;  // generations
constinit std::array<Page*, kMostInherited> inherited{};
constinit std::size_t inherited_count = 0;

bool is_ours(const Shared& one) {
  struct stat status;
  return one.descriptor >= 0 && base::status_of(one.descriptor, status) == 0 && status.st_ino == one.inode;
}

bool create() {
  const long made = base::system_call(SYS_memfd_create, "pario-children", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return false;
  struct stat status;
  const long high = base::system_call(SYS_fcntl, made, F_DUPFD_CLOEXEC, kLeastDescriptor);
  const bool good = high >= 0 && base::system_call(SYS_ftruncate, high, kPage) == 0 && base::status_of(static_cast<int>(high), status) == 0;
  base::close_file(static_cast<int>(made));
  if (good) shared = {static_cast<int>(high), status.st_ino, nullptr};
  return good;
}

bool map() {
  shared.page = reinterpret_cast<Page*>(base::map_shared(shared.descriptor, 0, kPage));
  return shared.page != nullptr;
}

/// What the page says when nobody has it any more; its descriptor is free again.
Fate close_shared() {
  std::uint64_t handed_on = 1;
  base::system_call(SYS_pread64, shared.descriptor, &handed_on, sizeof handed_on, 0L);
  base::close_file(shared.descriptor);
  shared = {};
  return handed_on == 0 ? Fate::gone : Fate::unknown;
}

bool stays_open(const char* name, bool (*is_meant)(int)) {
  int descriptor = 0;
  const std::string_view text = name;
  if (std::from_chars(text.data(), text.data() + text.size(), descriptor).ec != std::errc{}) return false;  // . and ..
  const long flags = base::system_call(SYS_fcntl, descriptor, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0 && is_meant(descriptor);
}

/// The mutex is held.
Fate look() {
  if (last != Fate::alive) return last;
  if (!is_ours(shared)) {  // the program has closed it
    shared = {};
    return last = Fate::unknown;
  }
  // Refused while anybody has it mapped for writing.
  if (base::system_call(SYS_fcntl, shared.descriptor, F_ADD_SEALS, F_SEAL_WRITE) == 0) last = close_shared();
  return last;
}

}  // namespace

Fate fate() {
  const std::unique_lock lock(mutex, std::try_to_lock);
  return lock.owns_lock() ? look() : Fate::alive;
}

Fate before_fork() {
  mutex.lock();
  return look();
}

bool follow_next() {
  const bool followed = (last == Fate::alive || create()) && map();
  last = followed ? Fate::alive : Fate::unknown;
  return followed;
}

void after_fork_in_parent() {
  if (shared.page != nullptr) base::unmap(shared.page, kPage);
  shared.page = nullptr;
  mutex.unlock();
}

void after_fork_in_child() {
  new (&mutex) std::mutex;
  if (shared.page != nullptr && inherited_count < kMostInherited)
    inherited[inherited_count++] = shared.page;
  else if (shared.page != nullptr)
    shared.page->store(1);  // too many generations
  if (is_ours(shared)) base::close_file(shared.descriptor);
  shared = {};
  last = Fate::gone;
}

bool any_stays_open(bool (*is_meant)(int descriptor)) {
  const int folder = base::open_file("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  alignas(dirent64) char entries[4096];
  long bytes = folder;
  bool found = folder < 0;
  while (!found && (bytes = base::system_call(SYS_getdents64, folder, entries, sizeof entries)) > 0)
    for (long at = 0; at < bytes && !found;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      found = stays_open(entry->d_name, is_meant);
      at += entry->d_reclen;
    }
  if (folder >= 0) base::close_file(folder);
  return found || bytes < 0;
}

bool has_copies() { return inherited_count != 0; }

void hand_on() {
  for (std::size_t i = 0; i < inherited_count; ++i) inherited[i]->store(1);
}

}  // namespace pario::stream::children
