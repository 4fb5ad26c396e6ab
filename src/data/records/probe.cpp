#include "data/records/probe.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>

#include "data/records/disk.hpp"
#include "data/records/philox.hpp"
#include "data/records/team.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kPiece = 1 << 20, kPieces = 32, kReads = 128;
constexpr std::uint64_t kProbeRounds =
    3;  // the best of them: others may use device and processors for a moment
constexpr unsigned kProbeThreads = 16;

/// Seconds of the best of several rounds.
std::optional<double> best_of(
    const std::function<std::optional<double>(std::uint64_t round)>& measure) {
  std::optional<double> best;
  for (std::uint64_t round = 0; round < kProbeRounds; ++round)
    if (const auto seconds = measure(round); seconds && (!best || *seconds < *best)) best = seconds;
  return best;
}

/// Seconds of `count` reads of `length` bytes, each at the offset that `place` returns.
std::optional<double> seconds_of(const Disk& file, std::uint64_t count, std::uint64_t length,
                                 const std::function<std::uint64_t(std::uint64_t)>& place) {
  std::atomic<std::uint64_t> next = 0;
  Meter meter;
  const std::uint64_t begin = base::monotonic_ns();
  const base::Status status = run_team(kProbeThreads, meter, [&](unsigned) -> base::Status {
    base::Result<Buffer> memory = Buffer::make(length);
    if (!memory.ok()) return memory.error();
    for (std::uint64_t i = next++; i < count; i = next++)
      if (const auto got = file.read(place(i), memory->span()); !got.ok()) return got.error();
    return {};
  });
  if (!status) return {};
  return static_cast<double>(base::monotonic_ns() - begin) * 1e-9;
}

}  // namespace

std::optional<Device> measure_device(const std::string& path, std::uint64_t length) {
  const base::Result<Disk> file = Disk::open(path, O_RDONLY, Caching::direct);
  struct stat facts{};
  if (!file.ok() || !file->direct() || ::fstat(file->number(), &facts) != 0) return {};
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  const std::uint64_t read =
      std::clamp(base::round_up(length + kAlignment / 2, kAlignment), kAlignment, kPiece);
  if (size < 2 * kProbeRounds * kPieces * kPiece) return {};
  const std::uint64_t start = base::round_down(size / 3, kAlignment);
  const auto in_order = best_of([&](std::uint64_t round) {
    return seconds_of(*file, kPieces, kPiece,
                      [&](std::uint64_t i) { return start + (round * kPieces + i) * kPiece; });
  });
  const ShuffleKeys places(base::monotonic_ns());
  const auto here_and_there = best_of([&](std::uint64_t round) {
    return seconds_of(*file, kReads, read, [&](std::uint64_t i) {
      return base::round_down(places.of(round * kReads + i) % (size - read), kAlignment);
    });
  });
  if (!in_order || !here_and_there) return {};
  Device device{.bandwidth = static_cast<double>(kPieces * kPiece) / *in_order};
  const double each =
      *here_and_there / static_cast<double>(kReads) - static_cast<double>(read) / device.bandwidth;
  device.requests = 1 / std::max(each, 1e-6);
  return device;
}

}  // namespace pario::records
