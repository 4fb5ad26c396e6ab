#include "layers/buffers/resident_pages.hpp"

#include <fcntl.h>
#include <linux/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "core/base/base.hpp"

namespace pario::buffers::resident_pages {
namespace {

// linux/fs.h since 6.7: struct pm_scan_arg and struct page_region.
struct ScanArguments {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  std::uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct PageRegion {
  std::uint64_t start, end, categories;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanArguments);
constexpr std::uint64_t kPageIsPresent = 1 << 3;

std::uint64_t address_of(const void* data) { return reinterpret_cast<std::uint64_t>(data); }

/// Returns the third number of a text: the pages of files in /proc/self/statm.
std::uint64_t third_number(std::string_view text) {
  for (int i = 0; i < 2; ++i) text.remove_prefix(std::min(text.find(' ') + 1, text.size()));
  return base::leading_number(text);
}

}  // namespace

Progress find_progress() {
  Progress progress;
  char text[128];
  const long size = base::read_file("/proc/self/statm", text, sizeof text);
  if (size > 0)
    progress.resident = third_number({text, static_cast<std::size_t>(size)}) *
                        static_cast<std::uint64_t>(::getpagesize());
  rusage usage{};
  base::system_call(SYS_getrusage, RUSAGE_SELF, &usage);
  progress.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
  return progress;
}

const char* find_first(const char* begin, const char* end) {
  const int descriptor = base::open_file("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  PageRegion region{};
  ScanArguments scan{};
  scan.size = sizeof scan;
  scan.start = address_of(begin), scan.end = address_of(end);
  scan.vec = address_of(&region), scan.vec_len = 1, scan.max_pages = 1;
  scan.category_mask = scan.return_mask = kPageIsPresent;
  const long found = base::system_call(SYS_ioctl, descriptor, kPagemapScan, &scan);
  base::close_file(descriptor);
  return found > 0 ? begin + (region.start - scan.start) : nullptr;
}

}  // namespace pario::buffers::resident_pages
