#include "layers/handles/name_watch.hpp"

#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <atomic>
#include <climits>

#include "core/base/base.hpp"
#include "layers/buffering/buffering.hpp"

namespace pario::handles::name_watch {
namespace {

constexpr std::uint32_t kMostWatches = 1024;  // watched files stay in the kernel's memory
/// Of a file: its name, the number of its names, its owner and permissions.
constexpr std::uint32_t kFileEvents = IN_MOVE_SELF | IN_ATTRIB;
constexpr std::uint32_t kDirectoryEvents = IN_MOVE_SELF | IN_ONLYDIR;

constinit std::atomic<int> queue{-1};
constinit std::atomic<Epoch> epoch{1};
constinit std::atomic<std::uint32_t> watches{0};

int open_queue() {
  int found = queue.load(std::memory_order_acquire);
  if (found >= 0) return found;
  const long made = base::system_call(SYS_inotify_init1, IN_NONBLOCK | IN_CLOEXEC);
  if (made < 0) return -1;
  const int own = base::move_high(static_cast<int>(made));
  if (queue.compare_exchange_strong(found, own, std::memory_order_acq_rel)) return own;
  base::close_file(own);
  return found;
}

bool add(int to, const char* path, std::uint32_t events) {
  if (watches.fetch_add(1, std::memory_order_relaxed) >= kMostWatches) return stop(), false;
  return base::system_call(SYS_inotify_add_watch, to, path, events) >= 0;
}

/// Watches the directories of a path, the highest one first.
bool add_directories(int to, std::string_view path) {
  char text[PATH_MAX];
  for (std::size_t slash = path.find('/', 1); slash != path.npos;
       slash = path.find('/', slash + 1)) {
    text[path.copy(text, slash)] = '\0';
    if (!add(to, text, kDirectoryEvents)) return false;
  }
  return true;
}

bool can_watch(int descriptor, std::string_view path) {
  const layout::Kind kind = buffers::file_system_of(descriptor);
  return (kind == layout::Kind::local || kind == layout::Kind::tmpfs) && path.size() < PATH_MAX &&
         base::Path(descriptor).view() == path;
}

/// Removes all events. The epoch changes first, so that no thread that finds the queue empty trusts
/// an old one.
void discard_events(int from) {
  char events[4096];
  epoch.fetch_add(1, std::memory_order_seq_cst);
  while (base::system_call(SYS_read, from, events, sizeof events) > 0) {
  }
}

}  // namespace

Epoch watch(int descriptor, std::string_view path) {
  if (!can_watch(descriptor, path)) return 0;
  const int to = open_queue();
  const Epoch before = epoch.load(std::memory_order_seq_cst);
  base::Text<32> link;
  link.add("/proc/self/fd/").add(descriptor);
  return to >= 0 && add_directories(to, path) && add(to, link.c_str(), kFileEvents) ? before : 0;
}

bool is_unchanged(Epoch since) {
  const int from = queue.load(std::memory_order_acquire);
  int bytes = 0;
  if (since == 0 || from < 0 || base::system_call(SYS_ioctl, from, FIONREAD, &bytes) < 0)
    return false;
  if (bytes != 0) discard_events(from);
  return since == epoch.load(std::memory_order_seq_cst);
}

bool is_own(int descriptor) {
  return descriptor >= 0 && descriptor == queue.load(std::memory_order_relaxed);
}

void stop() {
  epoch.fetch_add(1, std::memory_order_seq_cst);
  watches.store(0, std::memory_order_relaxed);
  const int own = queue.exchange(-1, std::memory_order_acq_rel);
  if (own >= 0) base::close_file(own);
}

}  // namespace pario::handles::name_watch
