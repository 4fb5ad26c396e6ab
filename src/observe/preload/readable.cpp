#include "observe/preload/readable.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/base/base.hpp"

namespace pario::preload {
namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr std::size_t kKnown = 8;

/// The pages that this thread has read since the last unmapping.
struct Readable {
  std::uint64_t unmaps;
  std::uintptr_t pages[kKnown];
};
constinit thread_local Readable readable [[gnu::tls_model("initial-exec")]] = {};
constinit std::atomic<std::uint64_t> unmaps{0};

/// Asks the kernel: sched_setaffinity reads its argument before it rejects the process -1. It reads
/// one byte of the text, so that valgrind reports nothing that the program does not do as well.
bool can_read(std::uintptr_t text) {
  return base::system_call(SYS_sched_setaffinity, -1, 1, text) != -EFAULT;
}

/// Asks the kernel about a page that is not `known`.
[[gnu::noinline, gnu::cold]] bool is_readable_now(std::uintptr_t text, std::uint64_t now,
                                                  std::uintptr_t& known) {
  if (readable.unmaps != now) readable = {.unmaps = now, .pages = {}};
  const std::uintptr_t page = text / kPage * kPage;
  if (page == 0 || !can_read(text)) return false;
  known = page;
  return true;
}

bool is_readable(std::uintptr_t text) {
  const std::uintptr_t page = text / kPage * kPage;
  const std::uint64_t now = unmaps.load(std::memory_order_acquire);
  std::uintptr_t& known = readable.pages[page / kPage % kKnown];
  if (readable.unmaps == now && known == page && page != 0) [[likely]]
    return true;
  return is_readable_now(text, now, known);
}

}  // namespace

std::string_view readable_text(const char* text) {
  std::size_t size = 0;
  for (std::size_t room = kLongestText; room != 0; room = kLongestText - size) {
    const auto at = reinterpret_cast<std::uintptr_t>(text) + size;
    if (!is_readable(at)) break;
    room = std::min<std::size_t>(room, kPage - at % kPage);
    const std::size_t length = strnlen(text + size, room);
    size += length;
    if (length < room) break;
  }
  return {text, size};
}

void forget_readable() { unmaps.fetch_add(1, std::memory_order_release); }

}  // namespace pario::preload
