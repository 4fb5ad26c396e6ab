#include "layers/caching/ahead.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "core/base/threads.hpp"
#include "core/hints/hints.hpp"

namespace pario::caching::ahead {
namespace {

using node_cache::Name;

constexpr std::size_t kFiles = 8192;                 // whose copies may exist
constexpr std::uint64_t kMostBytes = 256 << 20;      // of all copies
constexpr std::uint64_t kMostBytesOfFile = 1 << 20;  // larger files need no help for their opening
constexpr int kReaders = 32;
constexpr std::time_t kUncheckedSeconds = 10;  // the age up to which a copy is not checked
constexpr std::size_t kStackBytes = 256 << 10;

struct QueuedFile {
  char* path = nullptr;  // of the heap
  std::uint64_t bytes = 0;
};

// The files from `oldest` on have copies, or will have; those from `unread` on wait for a reader.
struct Queue {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t added = PTHREAD_COND_INITIALIZER;
  std::array<QueuedFile, kFiles> files = {};
  std::size_t oldest = 0, unread = 0, end = 0;
  std::uint64_t bytes = 0;
  long process = 0;  // that has the readers

  QueuedFile& at(std::size_t number) { return files[number % kFiles]; }
};
constinit Queue queue;

class Guard {
 public:
  Guard() { ::pthread_mutex_lock(&queue.mutex); }
  ~Guard() { ::pthread_mutex_unlock(&queue.mutex); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
};

void remove_oldest() {
  QueuedFile& file = queue.at(queue.oldest);
  base::Text<PATH_MAX> copy;
  node_cache::add_copy_ahead(copy, file.path);
  remove(copy.c_str());
  queue.bytes -= file.bytes;
  std::free(file.path);
  file = {};
  ++queue.oldest;
  queue.unread = std::max(queue.unread, queue.oldest);
}

/// Copies the next file.
void copy_next() {
  base::Text<PATH_MAX> path;
  std::size_t number = 0;
  {
    const Guard guard;
    while (queue.unread == queue.end) ::pthread_cond_wait(&queue.added, &queue.mutex);
    number = queue.unread++;
    path.add(queue.at(number).path);
  }
  const std::uint64_t bytes = node_cache::copy_ahead(path.view(), kMostBytesOfFile);
  const Guard guard;
  if (number < queue.oldest) {
    base::Text<PATH_MAX> copy;
    node_cache::add_copy_ahead(copy, path.view());
    return remove(copy.c_str());
  }
  queue.at(number).bytes = bytes;
  queue.bytes += bytes;
  while (queue.bytes > kMostBytes && queue.oldest < number) remove_oldest();
}

void* run_reader(void*) {
  for (;;) copy_next();
  return nullptr;
}

/// Starts the readers once per process. Without a reader, files are not copied.
void start_readers() {
  if (queue.process == base::system_call(SYS_getpid)) return;
  new (&queue) Queue;
  queue.process = base::system_call(SYS_getpid);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  for (int i = 0; i < kReaders; ++i)
    if (!base::start_thread(thread, &attributes, run_reader, nullptr)) break;
  ::pthread_attr_destroy(&attributes);
}

bool has_state_of_file(const struct stat& copy, const Name& name) {
  base::Text<PATH_MAX> path;
  struct stat file{};
  return base::status_of(path.add(name.view()).c_str(), file) == 0 &&
         copy.st_size == file.st_size && copy.st_mtim.tv_sec == file.st_mtim.tv_sec &&
         copy.st_mtim.tv_nsec == file.st_mtim.tv_nsec;
}

}  // namespace

bool is_active() {
  static const bool active = hints::of_process().loader_ahead && node_cache::is_open();
  return active;
}

void add(std::string_view names) {
  if (!is_active()) return;
  start_readers();
  const Guard guard;
  while (!names.empty()) {
    const std::string_view given = base::cut(names, '\0');
    base::Text<PATH_MAX> text;
    const Name name(AT_FDCWD, text.add(given).c_str());
    base::Text<PATH_MAX> path;
    if (!name.is_known() || name.is_cached()) continue;
    if (queue.end - queue.oldest == kFiles) remove_oldest();
    queue.at(queue.end++).path = ::strdup(path.add(name.view()).c_str());
  }
  ::pthread_cond_broadcast(&queue.added);
}

bool find(const Name& name, base::TextBuffer& copy) {
  if (!name.is_known() || !node_cache::find_copy_ahead(name, copy)) return false;
  struct stat status{};
  if (base::status_of(copy.c_str(), status) != 0) return false;
  timespec now{};
  base::system_call(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec - status.st_ctim.tv_sec <= kUncheckedSeconds || has_state_of_file(status, name))
    return true;
  remove(copy.c_str());
  return false;
}

void remove(const char* copy) { base::system_call(SYS_unlinkat, AT_FDCWD, copy, 0); }

void note_change(const Name& name) {
  if (is_active() && name.is_known()) node_cache::note_change_ahead(name);
}

}  // namespace pario::caching::ahead
