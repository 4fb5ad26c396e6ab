#include "layers/buffers/child_processes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <mutex>
#include <new>

#include "core/base/base.hpp"
#include "layers/buffers/buffers.hpp"

namespace pario::buffers::child_processes {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr int kLowestDescriptor = 1000;  // above those that programs use

using Page = std::atomic<std::uint64_t>;  // not 0: copies were handed on

/// The shared page in the parent: a memory file, which other processes map.
struct SharedPage {
  int descriptor = -1;
  ino_t inode = 0;
  Page* page = nullptr;  ///< during a fork
};

constinit std::mutex mutex;
constinit SharedPage shared{};
constinit Holders last{Holders::gone};

constexpr std::size_t kMostGenerations = 8;
constinit std::array<Page*, kMostGenerations> inherited{};
constinit std::size_t inherited_count = 0;

/// False if the program has closed the descriptor.
bool is_page_open() {
  struct stat status;
  return shared.descriptor >= 0 && base::status_of(shared.descriptor, status) == 0 &&
         status.st_ino == shared.inode;
}

bool create_page() {
  const long made =
      base::system_call(SYS_memfd_create, "pario-children", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return false;
  struct stat status;
  const long high = base::system_call(SYS_fcntl, made, F_DUPFD_CLOEXEC, kLowestDescriptor);
  const bool good = high >= 0 && base::system_call(SYS_ftruncate, high, kPageBytes) == 0 &&
                    base::status_of(static_cast<int>(high), status) == 0;
  base::close_file(static_cast<int>(made));
  if (good) shared = {static_cast<int>(high), status.st_ino, nullptr};
  return good;
}

bool map_page() {
  shared.page = reinterpret_cast<Page*>(base::map_shared(shared.descriptor, 0, kPageBytes));
  return shared.page != nullptr;
}

/// Reads the flag of a page that no process maps, and closes the page.
Holders close_page() {
  std::uint64_t handed_on = 1;
  base::system_call(SYS_pread64, shared.descriptor, &handed_on, sizeof handed_on, 0L);
  base::close_file(shared.descriptor);
  shared = {};
  return handed_on == 0 ? Holders::gone : Holders::unknown;
}

/// Checks whether a process maps the page. The caller holds the mutex.
Holders check_page() {
  if (last != Holders::alive) return last;
  if (!is_page_open()) {
    shared = {};
    return last = Holders::unknown;
  }
  // The kernel refuses the seal while a process maps the page for writing.
  if (base::system_call(SYS_fcntl, shared.descriptor, F_ADD_SEALS, F_SEAL_WRITE) == 0)
    last = close_page();
  return last;
}

}  // namespace

Holders find_holders() {
  const std::unique_lock lock(mutex, std::try_to_lock);
  return lock.owns_lock() ? check_page() : Holders::alive;
}

Holders before_fork() {
  mutex.lock();
  return check_page();
}

bool follow_next_child() {
  const bool followed = (last == Holders::alive || create_page()) && map_page();
  last = followed ? Holders::alive : Holders::unknown;
  return followed;
}

void after_fork_in_parent() {
  if (shared.page != nullptr) base::unmap(shared.page, kPageBytes);
  shared.page = nullptr;
  mutex.unlock();
}

void after_fork_in_child() {
  new (&mutex) std::mutex;
  if (shared.page != nullptr && inherited_count < kMostGenerations)
    inherited[inherited_count++] = shared.page;
  else if (shared.page != nullptr)
    shared.page->store(1);  // too many generations
  if (is_page_open()) base::close_file(shared.descriptor);
  shared = {};
  last = Holders::gone;
}

bool has_inherited_descriptors() { return inherited_count != 0; }

void mark_handed_on() {
  for (std::size_t i = 0; i < inherited_count; ++i) inherited[i]->store(1);
}

bool stays_open_on_exec(bool (*is_copy)(int descriptor)) {
  const auto stays_open = [](int descriptor, const void* copies) {
    const long flags = base::system_call(SYS_fcntl, descriptor, F_GETFD);
    return flags >= 0 && (flags & FD_CLOEXEC) == 0 &&
           reinterpret_cast<bool (*)(int)>(const_cast<void*>(copies))(descriptor);
  };
  return has_descriptor(stays_open, reinterpret_cast<const void*>(is_copy));
}

}  // namespace pario::buffers::child_processes
