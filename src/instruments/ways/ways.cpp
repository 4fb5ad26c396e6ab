#include "instruments/ways/ways.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "instruments/ways/way_run.hpp"

namespace pario::ways {
namespace {

constexpr std::uint64_t kReadBack = 1000;  ///< pieces that are verified after writing

struct Unmap {
  std::uint64_t size = 0;
  void operator()(std::byte* memory) const { base::unmap(memory, size); }
};
using Memory = std::unique_ptr<std::byte, Unmap>;

/// Allocates touched memory, so that page faults are not part of the measured time.
Memory memory_for(const Way& way, const Work& work) {
  const std::uint64_t size = base::round_up(way.at_a_time * work.piece, base::kPage);
  Memory memory(base::map_memory(size), Unmap{size});
  if (memory) std::memset(memory.get(), 1, size);
  return memory;
}

base::Result<std::uint64_t> size_of(const std::string& path) {
  struct stat facts{};
  if (const int error = base::status_of(path.c_str(), facts); error < 0)
    return base::Error{-error, "stat", path};
  return static_cast<std::uint64_t>(facts.st_size);
}

/// The measured time includes opening and closing the file.
base::Status move(WayRun& run) {
  constexpr Mover kMovers[] = {move_by_calls, move_by_calls, move_by_calls,
                               move_by_stdio, move_by_map,   move_by_ring};
  const int flags = (run.work.writes ? O_RDWR : O_RDONLY) | (run.way.direct ? O_DIRECT : 0);
  const int number = base::open_file(run.path.c_str(), flags | O_CLOEXEC);
  if (number < 0) return run.error("open", -number);
  const base::RawDescriptor file(number);
  if (base::Status moved = kMovers[static_cast<std::size_t>(run.way.call)](run, number);
      !moved.ok())
    return moved;
  if (run.work.synced && ::fdatasync(number) != 0) return run.error("fdatasync", errno);
  return {};
}

/// Reads evenly selected written pieces back and verifies them.
base::Status read_back(WayRun& run) {
  const int number = base::open_file(run.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (number < 0) return run.error("open", -number);
  const std::uint64_t step = std::max<std::uint64_t>(run.places.returned_count() / kReadBack, 1);
  for (std::uint64_t i = 0; i < run.places.returned_count(); i += step) {
    std::uint64_t found = 0;
    const std::uint64_t place = run.places.place(i);
    if (::pread(number, &found, sizeof found, static_cast<off_t>(place)) != sizeof found ||
        found != place)
      ++run.wrong;
  }
  base::close_file(number);
  return {};
}

}  // namespace

base::Result<Timing> time_way(const std::string& path, const Way& way, const Work& work) {
  const base::Result<std::uint64_t> size = size_of(path);
  if (!size.ok()) return size.error();
  if (way.at_a_time == 0 || work.piece < sizeof(std::uint64_t))
    return base::Error{EINVAL, "time_way", path};
  const Memory memory = memory_for(way, work);
  if (!memory) return base::Error{ENOMEM, "mmap", path};
  WayRun run{path, way, work, memory.get(), Places(*size, unit_of(way, work), work.random), *size};
  run.places.start(work.seconds);
  const std::uint64_t begin = base::monotonic_ns();
  if (const base::Status moved = move(run); !moved.ok()) return moved.error();
  const double seconds = static_cast<double>(base::monotonic_ns() - begin) * 1e-9;
  if (work.writes)
    if (const base::Status looked = read_back(run); !looked.ok()) return looked.error();
  return Timing{seconds, run.places.returned_count() * run.unit(), run.wrong};
}

base::Result<double> resident(const std::string& path) {
  const base::Result<std::uint64_t> size = size_of(path);
  if (!size.ok() || *size == 0) return size.ok() ? base::Result<double>(0.0) : size.error();
  const int number = base::open_file(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (number < 0) return base::Error{-number, "open", path};
  void* const mapped = ::mmap(nullptr, *size, PROT_READ, MAP_PRIVATE, number, 0);
  base::close_file(number);
  if (mapped == MAP_FAILED) return base::Error{errno, "mmap", path};
  std::vector<unsigned char> pages((*size + base::kPage - 1) / base::kPage);
  const int status = ::mincore(mapped, *size, pages.data());
  const int error = errno;
  ::munmap(mapped, *size);
  if (status != 0) return base::Error{error, "mincore", path};
  return static_cast<double>(
             std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; })) /
         static_cast<double>(pages.size());
}

}  // namespace pario::ways
