// The attributes of a file by which a change by another process is noticed.
#pragma once

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

#include "layers/buffers/system_calls.hpp"

namespace pario::buffers {

/// The time between two checks of bytes in memory that other processes may change.
inline constexpr std::uint64_t kValidNs = 100'000'000;

inline std::uint64_t ns_of(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

inline std::uint64_t read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return ns_of(time);
}

/// True if a further change of the file would change its time stamps. The clock of a file system
/// ticks every few milliseconds; some clocks tick every second.
inline bool has_reliable_stamps(const struct stat& file) {
  const std::uint64_t latest = std::max(ns_of(file.st_mtim), ns_of(file.st_ctim));
  const std::uint64_t now = read_clock(CLOCK_REALTIME_COARSE);
  const std::uint64_t tick = latest % 1'000'000'000 == 0 ? 2'000'000'000 : kValidNs;
  return now > latest && now - latest > tick;
}

/// True if the file system stores parts of a second.
inline bool has_fine_stamps(const struct stat& file) {
  return file.st_mtim.tv_nsec != 0 || file.st_ctim.tv_nsec != 0;
}

inline bool is_unchanged(const struct stat& a, const struct stat& b) {
  return file_id_of(a) == file_id_of(b) && a.st_size == b.st_size &&
         ns_of(a.st_mtim) == ns_of(b.st_mtim) && ns_of(a.st_ctim) == ns_of(b.st_ctim);
}

}  // namespace pario::buffers
