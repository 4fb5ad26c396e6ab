#include "preload/kept_behind.hpp"

#include <fcntl.h>
#include <stdio_ext.h>

#include "preload/beneath_stdio.hpp"

namespace pario::preload::kept {
namespace {

// One bit per file, by a hash: what is noted is never forgotten, and a file that is not may be taken for one that is.
constexpr std::size_t kBits = 1 << 15;
constinit std::atomic<std::uint64_t> strangers[kBits / 64] = {};
constinit std::atomic<bool> standard_noted{false};

std::size_t bit_of(const struct stat& file) {
  const std::uint64_t name[] = {file.st_dev, file.st_ino};
  return base::xxh64({reinterpret_cast<const char*>(name), sizeof name}) % kBits;
}

bool is_stranger(const struct stat& file) {
  const std::size_t bit = bit_of(file);
  return (strangers[bit / 64].load(std::memory_order_relaxed) >> (bit % 64) & 1) != 0;
}

/// Those that `fit` and are the program's or rest; false: there are none.
template <class Fits>
bool write_out_claimed(Fits fits) {
  bool found = false;
  for (const State state : {State::resting, State::lent})
    while (Place* place = claim(state, fits)) {
      write_out(*place);
      put(*place, state);
      found = true;
    }
  return found;
}

/// The same, and those that another thread works on.
template <class Fits>
bool write_out_those(Fits fits) {
  const auto waits = [&](const Place& place) { return place.unwritten.load(std::memory_order_acquire) && fits(place); };
  const std::uint64_t begin = base::monotonic_ns();
  bool found = write_out_claimed(waits);
  while (any(State::busy, waits) && wait_for_others(begin)) {
    write_out_claimed(waits);
    found = true;
  }
  return found;
}

}  // namespace

void write_out(Place& place) {
  if (!place.unwritten.load(std::memory_order_acquire)) return;
  const base::SavedErrno saved;
  const Work work;
  if (!beneath::flush_behind(place.stream)) place.lost = errno;
  set_unwritten(place, false);
}

bool write_out_file(const struct stat& file) {
  if (pario_in_vfork_child != 0 || !S_ISREG(file.st_mode)) return false;
  return write_out_those([&](const Place& place) { return place.is_of(file); });
}

void write_out_file(int descriptor) {
  struct stat file;
  const base::SavedErrno saved;
  if (base::status_of(descriptor, file) == 0) write_out_file(file);
}

void write_out_file(int directory, const char* path) {
  struct stat file;
  const base::SavedErrno saved;
  if (path != nullptr && base::system_call(SYS_newfstatat, directory, path, &file, AT_EMPTY_PATH) >= 0) write_out_file(file);
}

void write_out_others(const Place& place) {
  if (unwritten.load(std::memory_order_acquire) == 0) return;
  write_out_those([&](const Place& other) { return &other != &place && other.is_of(place.file); });
}

void write_out_all() {
  if (unwritten.load(std::memory_order_acquire) == 0) return;
  write_out_those([](const Place&) { return true; });
}

void note_stranger(int descriptor) {
  struct stat file;
  if (base::status_of(descriptor, file) != 0) return;
  const std::size_t bit = bit_of(file);
  strangers[bit / 64].fetch_or(1ull << (bit % 64), std::memory_order_relaxed);
}

bool may_wait(const Place& place) {
  std::FILE* stream = place.stream;
  if (!place.lazy || beneath::given_to(stream) == nullptr || stream->_mode > 0 || ferror_unlocked(stream) != 0) return false;
  if (place.returns && (place.mode[0] != 'a' || std::string_view(place.mode).find('+') != std::string_view::npos)) return false;
  if (__fpending(stream) == 0) return false;
  if (!standard_noted.exchange(true))
    for (const int standard : {0, 1, 2}) note_stranger(standard);
  const auto has_it = [&](const Place& other) { return other.is_of(place.file); };
  return !is_stranger(place.file) && !any(State::lent, has_it);
}

}  // namespace pario::preload::kept
