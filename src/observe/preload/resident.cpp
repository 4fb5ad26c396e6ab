#include "observe/preload/resident.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <cstring>
#include <string_view>

#include "core/base/base.hpp"
#include "core/trace/trace.hpp"

namespace pario::preload::mappings {
namespace {

constexpr std::string_view kResident = "Rss:";
constinit char buffer[64 << 10]{};

}  // namespace

std::uint64_t major_faults() {
  rusage usage{};
  base::system_call(SYS_getrusage, RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_majflt);
}

bool read_resident(void (*f)(std::uintptr_t begin, std::uint64_t bytes)) {
  const int descriptor = base::open_file("/proc/self/smaps", O_RDONLY);
  if (descriptor < 0) return false;
  std::uintptr_t begin = 0;
  std::size_t kept = 0;  // bytes of a line that the last read has cut
  for (;;) {
    const long got = base::system_call(SYS_read, descriptor, buffer + kept, sizeof buffer - kept);
    trace::add(&trace::Process::tracer_reads, 1);
    if (got <= 0) break;
    trace::add(&trace::Process::tracer_bytes_read, static_cast<std::uint64_t>(got));
    std::string_view text(buffer, kept + static_cast<std::size_t>(got));
    for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      const std::string_view line = text.substr(0, end);
      // A mapping begins with its addresses, in hexadecimal small letters; facts have capitals.
      if (!line.empty() && (line[0] < 'A' || line[0] > 'Z')) begin = base::leading_number(line, 16);
      if (line.starts_with(kResident)) f(begin, 1024 * base::leading_number(line.substr(4)));
    }
    kept = text.size();
    std::memmove(buffer, text.data(), kept);
  }
  base::close_file(descriptor);
  return true;
}

}  // namespace pario::preload::mappings
