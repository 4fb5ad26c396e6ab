#include "preload/kept_places.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio_ext.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstring>
#include <optional>
#include <string_view>

#include "preload/beneath_stdio.hpp"
#include "preload/kept.hpp"
#include "preload/kept_behind.hpp"

namespace pario::preload::kept {
namespace {

constexpr std::uint64_t kTrustedNs = 100'000'000;  // for which a name is taken to mean the same file still
constexpr std::uint64_t kKeptNs = 2'000'000'000;   // after which what rests is closed
constexpr std::uint64_t kLookNs = 500'000'000;     // how often that is looked at

constinit std::atomic<std::uint32_t> resting{0};                          // places that rest
constinit std::atomic<unsigned> standard{7};                              // which of 0, 1 and 2 are open
constinit base::FutexWord asleep{0};                                      // the thread that closes waits until something rests
constinit base::FutexWord urgent{0};                                      // what rests is to be closed at once
constinit std::atomic<bool> closing{false};                               // the thread is there
constinit std::atomic<bool> ended{false};                                 // nothing is kept any more
constinit std::atomic<std::uint64_t> bits[beneath::kCapacity / 64] = {};  // descriptors that rest

void set_resting(int descriptor, bool rest) {
  const std::uint64_t bit = 1ull << (descriptor % 64);
  if (rest)
    bits[descriptor / 64].fetch_or(bit, std::memory_order_release);
  else
    bits[descriptor / 64].fetch_and(~bit, std::memory_order_release);
  resting.fetch_add(rest ? 1u : -1u, std::memory_order_release);
}

/// A place that rested is closed for good.
void close_for_good(Place& place) {
  const base::SavedErrno saved;
  const Work work;
  set_resting(place.descriptor, false);
  const int result = place.stream != nullptr ? real<int (*)(std::FILE*), Symbol::fclose>()(place.stream)
                                             : real<int (*)(int), Symbol::close>()(place.descriptor);
  if (result != 0) {
    base::Text<512> text;
    stream::tell(text.add(std::string_view(place.path, place.path_size)).add(": close: ").add(base::errno_name(errno)).view());
  }
  put(place, State::none);
}

/// The program has what a place is for, and will close it: nobody else knows of it from now on.
void release(Place& place) {
  if (place.stream != nullptr) note_stranger(place.descriptor);
  put(place, State::none);
}

template <class Fits>
bool close_all(Fits fits) {
  bool found = false;
  const Work work;
  while (Place* place = claim(State::resting, fits)) {
    close_for_good(*place);
    found = true;
  }
  return found;
}

/// Their names no longer mean them: what rests is closed, what the program has will be.
template <class Fits>
void give_up_names(Fits fits) {
  const std::uint64_t begin = base::monotonic_ns();
  do {
    close_all(fits);
    while (Place* place = claim(State::lent, fits)) {
      write_out(*place);
      release(*place);
    }
  } while (any(State::busy, fits) && wait_for_others(begin));
}

void give_up_names_of(const struct stat& file) {
  give_up_names([&](const Place& place) { return place.file.st_dev == file.st_dev && place.file.st_ino == file.st_ino; });
}

/// Looks twice a second while anything rests, and at once at what is closed only not to wait for it.
void* close_old(void*) {
  for (;;) {
    if (resting.load(std::memory_order_acquire) == 0) {
      asleep.store(1, std::memory_order_release);
      if (resting.load(std::memory_order_seq_cst) == 0) base::futex_wait(asleep, 1, 1000 * kKeptNs);
    }
    asleep.store(0, std::memory_order_release);
    const std::uint32_t seen = urgent.load(std::memory_order_acquire);
    const std::uint64_t limit = base::monotonic_ns() - kKeptNs;
    close_all([=](const Place& place) { return place.since < limit || !place.returns; });
    base::futex_wait(urgent, seen, kLookNs);
  }
  return nullptr;
}

void start_closing() {
  if (closing.exchange(true, std::memory_order_acq_rel)) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, close_old, nullptr) == 0)
    pthread_detach(thread);
  else
    closing.store(false, std::memory_order_release);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// A name that means one file however often it is asked; nothing: it is too long, or its meaning is the kernel's to find.
std::optional<Name> name_of(int directory, const char* path) {
  if (path == nullptr || pario_in_vfork_child != 0 || base::Unbuffered::active()) return {};
  const std::string_view text(path, strnlen(path, kLongestPath));
  if (text.empty() || text.size() >= kLongestPath || text.ends_with('/')) return {};
  if (text[0] == '/') return Name{text};
  if (directory != AT_FDCWD) return {};
  const base::Path absolute(directory, path);
  return absolute.known() ? std::optional(Name{text, base::xxh64(absolute.view()) | 1}) : std::nullopt;
}

std::optional<Name> name_of(int directory, const char* path, int flags) {
  constexpr int kOnce = O_CREAT | O_TRUNC | O_NOCTTY;  // what they do is done
  if ((flags & (O_EXCL | O_DIRECTORY | O_PATH)) != 0) return {};
  auto name = name_of(directory, path);
  if (name) name->flags = flags & ~kOnce;
  return name;
}

std::optional<Name> name_of(const char* path, const char* mode) {
  const std::string_view text(mode == nullptr ? "" : mode);
  if (text.empty() || text.size() >= kLongestMode || text.find_first_not_of("rwab+e") != text.npos) return {};
  auto name = name_of(AT_FDCWD, path);
  if (name) name->mode = text;
  return name;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_mode == b.st_mode && a.st_uid == b.st_uid && a.st_gid == b.st_gid;
}

/// Whether the name means the file still.
bool is_there(Place& place) {
  const std::uint64_t now = base::monotonic_ns();
  if (now - place.checked < kTrustedNs) return true;
  struct stat found;
  if (base::system_call(SYS_newfstatat, AT_FDCWD, place.path, &found, 0) < 0 || !is_same(place.file, found)) return false;
  place.checked = now;
  return true;
}

int cut(int descriptor) {
  const base::SavedErrno saved;
  return real<int (*)(int, off_t), Symbol::ftruncate>()(descriptor, 0);
}

Place* claim_resting(const std::optional<Name>& name) {
  if (!name || resting.load(std::memory_order_acquire) == 0 || standard.load(std::memory_order_relaxed) != 7) return nullptr;
  return claim(State::resting, [&](const Place& place) { return place.returns && place.is(*name); });
}

/// Gives a claimed place to the program, or gives it up.
bool lend(Place& place, bool cuts) {
  if (!is_there(place)) return close_for_good(place), false;
  write_out_others(place);
  set_resting(place.descriptor, false);
  if (!cuts || cut(place.descriptor) == 0) return true;
  set_resting(place.descriptor, true);
  return close_for_good(place), false;
}

/// False: there is no place for it.
bool note(const Name& name, const hints::StreamHints& wished, int descriptor, std::FILE* stream) {
  struct stat file;
  if (base::status_of(descriptor, file) != 0) return false;
  give_up_names([&](const Place& place) { return place.is(name) && !is_same(place.file, file); });
  Place* place = claim(State::none, [](const Place&) { return true; });
  if (place == nullptr) return false;
  place->lost = 0;
  place->returns = wished.handles;
  place->lazy = wished.lazyclose;
  place->descriptor = descriptor;
  place->stream = stream;
  place->file = file;
  place->checked = base::monotonic_ns();
  place->call(name);
  put(*place, State::lent);
  return true;
}

/// What the settings say of a name, where they say that it is kept at all.
std::optional<hints::StreamHints> wishes_of(int directory, const char* path) {
  const base::Path name(directory, path);
  if (!name.known()) return {};
  const beneath::Wished wished = beneath::wished_of(name.view());
  const bool kept = !wished.specification.empty() && (wished.hints.handles || wished.hints.lazyclose);
  return kept ? std::optional(wished.hints) : std::nullopt;
}

void rest(Place& place) {
  place.since = base::monotonic_ns();
  set_resting(place.descriptor, true);
  put(place, State::resting);
  start_closing();
  if (asleep.load(std::memory_order_seq_cst) != 0 && asleep.exchange(0) != 0) base::futex_wake(asleep);
  if (place.returns) return;
  urgent.fetch_add(1, std::memory_order_release);
  base::futex_wake(urgent);
}

/// As if it had just been opened, its bytes written.
bool renew(std::FILE* stream) {
  if (beneath::given_to(stream) == nullptr || stream->_mode > 0 || ferror_unlocked(stream) != 0) return false;
  real<int (*)(std::FILE*), Symbol::fflush_unlocked>();  // makes it known beneath, where flushes are not ignored
  if (beneath::next<Symbol::fflush_unlocked, int>(stream) != 0) return false;
  __fpurge(stream);
  clearerr_unlocked(stream);
  stream->_mode = 0;
  stream->_offset = -1;
  return true;
}

stream::Rest rest_of(const Place& place) {
  if (!place.lazy) return stream::Rest::written;
  return place.returns ? stream::Rest::waiting : stream::Rest::leaving;
}

/// Whether a place that the program closes, and is the caller's, can rest; readies it.
bool can_rest(Place& place) {
  if (place.lost != 0) return false;
  if (ended.load(std::memory_order_acquire)) return false;
  if (stream::Handle* handle = beneath::handle_of(place.descriptor)) return stream::rest(*handle, rest_of(place));
  if (place.stream == nullptr) return false;
  const bool waits = may_wait(place);
  set_unwritten(place, waits);
  return waits || (place.returns && renew(place.stream));
}

/// The program closes what `fits`.
template <class Fits>
Kept keep_one(Fits fits) {
  Place* place = claim(State::lent, fits);
  for (const std::uint64_t begin = base::monotonic_ns(); place == nullptr && any(State::busy, fits) && wait_for_others(begin);)
    place = claim(State::lent, fits);
  if (place == nullptr) return {};
  const Work work;
  const Kept kept{can_rest(*place), place->lost};
  if (kept.rests)
    rest(*place);
  else
    put(*place, State::none);
  return kept;
}

bool says(std::string_view key) {
  const hints::HintSet& said = hints::of_process();
  return said.streams.view().find(key) != std::string_view::npos || said.iobuf_params.view().find(key) != std::string_view::npos;
}

}  // namespace

bool wanted() { return beneath::wanted() && (says(":handles") || says(":lazyclose")); }

bool rests(int descriptor) {
  if (static_cast<unsigned>(descriptor) >= beneath::kCapacity || resting.load(std::memory_order_relaxed) == 0) return false;
  return (bits[descriptor / 64].load(std::memory_order_acquire) >> (descriptor % 64) & 1) != 0 && pario_in_vfork_child == 0;
}

int reopen(int directory, const char* path, int flags) {
  const Work work;
  Place* place = claim_resting(name_of(directory, path, flags));
  if (place == nullptr || !lend(*place, (flags & O_TRUNC) != 0)) return -1;
  const int descriptor = place->descriptor;
  put(*place, State::lent);
  return descriptor;
}

std::FILE* reopen(const char* path, const char* mode) {
  const Work work;
  Place* place = claim_resting(name_of(path, mode));
  if (place == nullptr || !lend(*place, mode[0] == 'w')) return nullptr;
  std::FILE* stream = place->stream;
  const base::SavedErrno saved;
  if (place->lost == 0 && ferror_unlocked(stream) != 0) place->lost = EIO;  // written behind our back
  if (!place->unwritten && std::strcmp(mode, "a") != 0 && beneath::handle_of(place->descriptor) == nullptr)
    real<int (*)(std::FILE*, long, int), Symbol::fseek>()(stream, 0, SEEK_SET);
  put(*place, State::lent);
  return stream;
}

void note_open(int directory, const char* path, int flags, int descriptor) {
  if (descriptor < 0) return;
  const base::SavedErrno saved;
  note_number(descriptor, true);
  forget(descriptor);  // closed behind our back
  const auto name = name_of(directory, path, flags & ~O_EXCL);
  if (descriptor <= 2 || !name || beneath::handle_of(descriptor) == nullptr) return;
  if (const auto wished = wishes_of(directory, path)) note(*name, *wished, descriptor, nullptr);
}

void note_open(const char* path, const char* mode, std::FILE* stream) {
  if (stream == nullptr) return;
  const base::SavedErrno saved;
  const int descriptor = stream->_fileno;
  forget(descriptor);
  const auto name = name_of(path, mode);
  const bool keepable = beneath::given_to(stream) != nullptr || beneath::handle_of(descriptor) != nullptr;
  const auto wished = descriptor > 2 && name && keepable ? wishes_of(AT_FDCWD, path) : std::nullopt;
  if (!wished || !note(*name, *wished, descriptor, stream)) note_stranger(descriptor);
}

Kept keep(int descriptor) {
  return keep_one([=](const Place& place) { return place.descriptor == descriptor && place.stream == nullptr; });
}

Kept keep(std::FILE* stream) {
  return keep_one([=](const Place& place) { return place.stream == stream; });
}

void forget(int descriptor) {
  if (descriptor >= 0) forget(static_cast<unsigned>(descriptor), static_cast<unsigned>(descriptor));
}

void forget(unsigned first, unsigned last) {
  const auto fits = [=](const Place& place) {
    const auto number = static_cast<unsigned>(place.descriptor);
    return first <= number && number <= last;
  };
  while (Place* place = claim(State::lent, fits)) release(*place);
  while (Place* place = claim(State::resting, fits)) {
    set_resting(place->descriptor, false);
    put(*place, State::none);
  }
}

void note_number(int descriptor, bool open) {
  if (descriptor < 0 || descriptor > 2) return;
  if (open) {
    note_stranger(descriptor);
    standard.fetch_or(1u << descriptor, std::memory_order_relaxed);
  } else {
    standard.fetch_and(~(1u << descriptor), std::memory_order_relaxed);
  }
}

void forget_all() {
  closing.store(false, std::memory_order_relaxed);
  asleep.store(0, std::memory_order_relaxed);
  for (Place& place : places)
    if (place.state == State::resting) set_resting(place.descriptor, false);
  forget_table();
}

void give_up(int descriptor) {
  if (rests(descriptor)) close_all([=](const Place& place) { return place.descriptor == descriptor; });
}

void give_up(int directory, const char* path) {
  struct stat file;
  if (path == nullptr || in_use.load(std::memory_order_acquire) == 0) return;
  if (base::system_call(SYS_newfstatat, directory, path, &file, 0) < 0 || !S_ISREG(file.st_mode)) return give_up_names();
  give_up_names_of(file);
}

void give_up_file(int descriptor) {
  struct stat file;
  if (in_use.load(std::memory_order_acquire) != 0 && base::status_of(descriptor, file) == 0) give_up_names_of(file);
}

void give_up_names() {
  give_up_names([](const Place&) { return true; });
}

bool give_up_all() {
  const std::uint64_t begin = base::monotonic_ns();
  const bool found = close_all([](const Place&) { return true; });
  write_out_all();
  while (others_work() && wait_for_others(begin)) {
  }
  return found;
}

void end() {
  ended.store(true, std::memory_order_release);
  give_up_all();
}

}  // namespace pario::preload::kept
