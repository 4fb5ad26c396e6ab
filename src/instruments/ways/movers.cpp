#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "instruments/ways/job.hpp"

namespace pario::ways {
namespace {

/// Calls `move(place)` for each unit, which moves all pieces of the unit and returns the bytes
/// moved.
template <class Move>
base::Status each_place(Job& job, const char* operation, Move move) {
  const std::uint64_t pieces = job.unit() / job.work.piece;
  while (const auto place = job.places.next()) {
    for (std::uint64_t i = 0; job.work.writes && i < pieces; ++i)
      Job::sign(job.piece(i), *place + i * job.work.piece);
    const ssize_t moved = move(*place);
    if (moved != static_cast<ssize_t>(job.unit()))
      return job.error(operation, moved < 0 ? errno : EIO, *place);
    for (std::uint64_t i = 0; !job.work.writes && i < pieces; ++i)
      job.verify(job.piece(i), *place + i * job.work.piece);
  }
  return {};
}

off_t offset(std::uint64_t place) { return static_cast<off_t>(place); }

base::Status move_by_read(Job& job, int descriptor) {
  return each_place(job, job.work.writes ? "write" : "read", [&](std::uint64_t place) {
    if (job.work.random) ::lseek(descriptor, offset(place), SEEK_SET);
    return job.work.writes ? ::write(descriptor, job.memory, job.work.piece)
                           : ::read(descriptor, job.memory, job.work.piece);
  });
}

base::Status move_by_pread(Job& job, int descriptor) {
  return each_place(job, job.work.writes ? "pwrite" : "pread", [&](std::uint64_t place) {
    return job.work.writes ? ::pwrite(descriptor, job.memory, job.work.piece, offset(place))
                           : ::pread(descriptor, job.memory, job.work.piece, offset(place));
  });
}

base::Status move_by_readv(Job& job, int descriptor) {
  std::vector<iovec> pieces(job.way.at_a_time);
  for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i] = {job.piece(i), job.work.piece};
  const int count = static_cast<int>(pieces.size());
  return each_place(job, job.work.writes ? "writev" : "readv", [&](std::uint64_t place) {
    if (job.work.random) ::lseek(descriptor, offset(place), SEEK_SET);
    return job.work.writes ? ::writev(descriptor, pieces.data(), count)
                           : ::readv(descriptor, pieces.data(), count);
  });
}

struct UnmapFile {
  std::uint64_t size;
  void operator()(std::byte* map) const { ::munmap(map, size); }
};

}  // namespace

base::Status move_by_calls(Job& job, int descriptor) {
  if (job.way.advised)
    ::posix_fadvise(descriptor, 0, 0, job.work.random ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL);
  if (job.way.call == Call::read) return move_by_read(job, descriptor);
  return job.way.call == Call::pread ? move_by_pread(job, descriptor)
                                     : move_by_readv(job, descriptor);
}

base::Status move_by_stdio(Job& job, int descriptor) {
  const auto closes = [](std::FILE* stream) { std::fclose(stream); };
  std::vector<char> buffer(job.way.buffer);
  const int own = ::dup(descriptor);
  if (own < 0) return job.error("dup", errno);
  const std::unique_ptr<std::FILE, decltype(closes)> stream(
      ::fdopen(own, job.work.writes ? "w" : "r"), closes);
  if (!stream) return job.error("fdopen", errno);
  if (!buffer.empty()) std::setvbuf(stream.get(), buffer.data(), _IOFBF, buffer.size());
  base::Status moved =
      each_place(job, job.work.writes ? "fwrite" : "fread", [&](std::uint64_t place) {
        if (job.work.random && ::fseeko(stream.get(), offset(place), SEEK_SET) != 0)
          return ssize_t{-1};
        // NOLINTBEGIN(clang-analyzer-unix.Stream): a short item is the last one
        return static_cast<ssize_t>(job.work.writes
                                        ? std::fwrite(job.memory, 1, job.work.piece, stream.get())
                                        : std::fread(job.memory, 1, job.work.piece, stream.get()));
        // NOLINTEND(clang-analyzer-unix.Stream)
      });
  if (!moved) return moved;
  return std::fflush(stream.get()) == 0 ? base::Status() : job.error("fflush", errno);
}

base::Status move_by_map(Job& job, int descriptor) {
  void* const mapped =
      ::mmap(nullptr, job.size, job.work.writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
             descriptor, 0);
  if (mapped == MAP_FAILED) return job.error("mmap", errno);
  const std::unique_ptr<std::byte, UnmapFile> map(static_cast<std::byte*>(mapped),
                                                  UnmapFile{job.size});
  if (job.way.advised) ::madvise(mapped, job.size, job.work.random ? MADV_RANDOM : MADV_SEQUENTIAL);
  return each_place(job, "memcpy", [&](std::uint64_t place) {
    std::byte* const there = map.get() + place;
    std::memcpy(job.work.writes ? there : job.memory, job.work.writes ? job.memory : there,
                job.work.piece);
    return static_cast<ssize_t>(job.work.piece);
  });
}

}  // namespace pario::ways
