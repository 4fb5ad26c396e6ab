#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "instruments/ways/way_run.hpp"

namespace pario::ways {
namespace {

/// Calls `move(place)` for each unit, which moves all pieces of the unit and returns the bytes
/// moved.
template <class Move>
base::Status each_place(WayRun& run, const char* operation, Move move) {
  const std::uint64_t pieces = run.unit() / run.work.piece;
  while (const auto place = run.places.next()) {
    for (std::uint64_t i = 0; run.work.writes && i < pieces; ++i)
      WayRun::sign(run.piece(i), *place + i * run.work.piece);
    const ssize_t moved = move(*place);
    if (moved != static_cast<ssize_t>(run.unit()))
      return run.error(operation, moved < 0 ? errno : EIO, *place);
    for (std::uint64_t i = 0; !run.work.writes && i < pieces; ++i)
      run.verify(run.piece(i), *place + i * run.work.piece);
  }
  return {};
}

off_t offset(std::uint64_t place) { return static_cast<off_t>(place); }

base::Status move_by_read(WayRun& run, int descriptor) {
  return each_place(run, run.work.writes ? "write" : "read", [&](std::uint64_t place) {
    if (run.work.random) ::lseek(descriptor, offset(place), SEEK_SET);
    return run.work.writes ? ::write(descriptor, run.memory, run.work.piece)
                           : ::read(descriptor, run.memory, run.work.piece);
  });
}

base::Status move_by_pread(WayRun& run, int descriptor) {
  return each_place(run, run.work.writes ? "pwrite" : "pread", [&](std::uint64_t place) {
    return run.work.writes ? ::pwrite(descriptor, run.memory, run.work.piece, offset(place))
                           : ::pread(descriptor, run.memory, run.work.piece, offset(place));
  });
}

base::Status move_by_readv(WayRun& run, int descriptor) {
  std::vector<iovec> pieces(run.way.at_a_time);
  for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i] = {run.piece(i), run.work.piece};
  const int count = static_cast<int>(pieces.size());
  return each_place(run, run.work.writes ? "writev" : "readv", [&](std::uint64_t place) {
    if (run.work.random) ::lseek(descriptor, offset(place), SEEK_SET);
    return run.work.writes ? ::writev(descriptor, pieces.data(), count)
                           : ::readv(descriptor, pieces.data(), count);
  });
}

struct UnmapFile {
  std::uint64_t size;
  void operator()(std::byte* map) const { ::munmap(map, size); }
};

}  // namespace

base::Status move_by_calls(WayRun& run, int descriptor) {
  if (run.way.advised)
    ::posix_fadvise(descriptor, 0, 0, run.work.random ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL);
  if (run.way.call == Call::read) return move_by_read(run, descriptor);
  return run.way.call == Call::pread ? move_by_pread(run, descriptor)
                                     : move_by_readv(run, descriptor);
}

base::Status move_by_stdio(WayRun& run, int descriptor) {
  const auto closes = [](std::FILE* stream) { std::fclose(stream); };
  std::vector<char> buffer(run.way.buffer);
  const int own = ::dup(descriptor);
  if (own < 0) return run.error("dup", errno);
  const std::unique_ptr<std::FILE, decltype(closes)> stream(
      ::fdopen(own, run.work.writes ? "w" : "r"), closes);
  if (!stream) return run.error("fdopen", errno);
  if (!buffer.empty()) std::setvbuf(stream.get(), buffer.data(), _IOFBF, buffer.size());
  base::Status moved =
      each_place(run, run.work.writes ? "fwrite" : "fread", [&](std::uint64_t place) {
        if (run.work.random && ::fseeko(stream.get(), offset(place), SEEK_SET) != 0)
          return ssize_t{-1};
        // NOLINTBEGIN(clang-analyzer-unix.Stream): a short item is the last one
        return static_cast<ssize_t>(run.work.writes
                                        ? std::fwrite(run.memory, 1, run.work.piece, stream.get())
                                        : std::fread(run.memory, 1, run.work.piece, stream.get()));
        // NOLINTEND(clang-analyzer-unix.Stream)
      });
  if (!moved) return moved;
  return std::fflush(stream.get()) == 0 ? base::Status() : run.error("fflush", errno);
}

base::Status move_by_map(WayRun& run, int descriptor) {
  void* const mapped =
      ::mmap(nullptr, run.size, run.work.writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
             descriptor, 0);
  if (mapped == MAP_FAILED) return run.error("mmap", errno);
  const std::unique_ptr<std::byte, UnmapFile> map(static_cast<std::byte*>(mapped),
                                                  UnmapFile{run.size});
  if (run.way.advised) ::madvise(mapped, run.size, run.work.random ? MADV_RANDOM : MADV_SEQUENTIAL);
  return each_place(run, "memcpy", [&](std::uint64_t place) {
    std::byte* const there = map.get() + place;
    std::memcpy(run.work.writes ? there : run.memory, run.work.writes ? run.memory : there,
                run.work.piece);
    return static_cast<ssize_t>(run.work.piece);
  });
}

}  // namespace pario::ways
