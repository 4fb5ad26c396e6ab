#include "observe/preload/unseen_rings.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstring>

#include "core/base/base.hpp"
#include "observe/preload/descriptions.hpp"
#include "observe/preload/rings.hpp"

namespace pario::preload::unseen_rings {
namespace {

constexpr std::uint64_t kMostLooksForFiles = 32;        // of a process with rings
constexpr std::uint64_t kBetweenLooks = 1'000'000'000;  // ns
constexpr std::size_t kMostDescriptors = 512;           // of a look
constexpr std::string_view kTarget = "anon_inode:[io_uring]";
constexpr std::string_view kSubmissions = "CachedSqHead:\t";

struct Known {
  int descriptor;
  std::uint32_t submissions;
};
constinit std::array<Known, 32> known{};
constinit std::atomic<std::size_t> known_count = 0;
constinit std::uint64_t lock = 0;
constinit std::atomic<std::uint64_t> last_look = 0;
constinit std::atomic<std::uint64_t> unused_files = 0;

/// The path of a descriptor in a folder of /proc/self.
struct DescriptorPath : base::Text<64> {
  DescriptorPath(const char* folder, int descriptor) {
    add("/proc/self/").add(folder).add('/').add(descriptor);
  }
};

// Only descriptors without a type, such as rings, are asked for their link: its text takes the
// kernel ten times as long as the status.
bool is_ring(int descriptor) {
  struct stat status;
  if (base::status_of(descriptor, status) < 0 || (status.st_mode & S_IFMT) != 0) return false;
  char target[64];
  const long size =
      base::read_link(DescriptorPath("fd", descriptor).c_str(), target, sizeof target);
  return size > 0 && std::string_view(target, static_cast<std::size_t>(size)) == kTarget;
}

/// Reads the number of submissions that the kernel has taken from a ring; false: it is not known.
bool read_submissions(int descriptor, std::uint32_t& submissions) {
  char text[512];
  const long size =
      base::read_file(DescriptorPath("fdinfo", descriptor).c_str(), text, sizeof text);
  const std::string_view facts(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t place = facts.find(kSubmissions);
  if (place == facts.npos) return false;
  const char* const first = facts.data() + place + kSubmissions.size();
  return std::from_chars(first, facts.data() + facts.size(), submissions).ec == std::errc{};
}

/// Returns the entry of a ring; null: there are too many.
Known* find(int descriptor) {
  for (std::size_t i = 0; i < known_count; ++i)
    if (known[i].descriptor == descriptor) return &known[i];
  if (known_count == known.size()) return nullptr;
  trace::add(&trace::Process::uring_rings, 1);
  Known& added = known[known_count++];
  added = {descriptor, 0};
  return &added;
}

void count(int descriptor) {
  std::uint32_t submissions = 0;
  if (rings::is_known(descriptor) || !is_ring(descriptor) ||
      !read_submissions(descriptor, submissions))
    return;
  Known* const ring = find(descriptor);
  if (ring == nullptr) return;
  const auto more = static_cast<std::int32_t>(submissions - ring->submissions);
  if (more < 0) trace::add(&trace::Process::uring_rings, 1);  // another one with the same number
  trace::add(&trace::Process::uring_unattributed,
             more < 0 ? submissions : static_cast<std::uint32_t>(more));
  ring->submissions = submissions;
}

/// Calls `use` with the first descriptors of the process.
template <class Use>
void for_each_descriptor(Use use) {
  const int folder = base::open_file("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(dirent64) char entries[4096];
  std::size_t number = 0;
  for (long size; number < kMostDescriptors &&
                  (size = base::read_entries(folder, entries, sizeof entries)) > 0;)
    for (long place = 0; place < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + place);
      place += entry->d_reclen;
      int descriptor = -1;
      const char* const name = entry->d_name;
      std::from_chars(name, name + std::strlen(name), descriptor);
      if (descriptor >= 0 && ++number < kMostDescriptors) use(descriptor);
    }
  base::close_file(folder);
}

}  // namespace

void look(bool must) {
  const std::uint64_t now = base::monotonic_ns();
  std::uint64_t last = last_look.load(std::memory_order_relaxed);
  const bool is_due = last != 0 && now - last >= kBetweenLooks;
  if (!must && !is_due && last != 0) return;
  // Another thread that looks, or has just looked, is enough.
  if (!last_look.compare_exchange_strong(last, now, std::memory_order_relaxed) && !must) return;
  if (!must && !is_due) return;
  const base::SpinLock guard(lock);
  for_each_descriptor(count);
}

// Without a ring so far, only the first, second, fourth, ... file is a reason: many programs open
// files to ask for their status, and a look takes a dozen system calls.
void look_for_unused_file() {
  const std::uint64_t files = preload::advance(unused_files, 1) + 1;
  const bool is_power = (files & (files - 1)) == 0;  // std::has_single_bit is a function call
  const bool has_rings = known_count.load(std::memory_order_relaxed) != 0;
  if (is_power || (has_rings && files <= kMostLooksForFiles)) look(true);
}

void forget_all() {
  lock = 0;
  known_count = 0;
  unused_files = 0;
  last_look = 0;
}

}  // namespace pario::preload::unseen_rings
