// The table of kept handles: places, each of one thread's at a time. For kept_*.cpp.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "base/base.hpp"
#include "preload/tracer.hpp"

namespace pario::preload::kept {

inline constexpr std::size_t kMost = 32;
inline constexpr std::size_t kLongestPath = 256, kLongestMode = 8;

/// What a program gives to open a file. Relative names belong to the directory they begin at.
struct Name {
  std::string_view path;
  std::uint64_t directory = 0;  ///< a hash; 0: the path is absolute
  int flags = 0;                ///< of a descriptor: those that last
  std::string_view mode = {};   ///< of a stream
};

/// busy: one thread works on it. lent: the program has it open.
enum class State : std::uint8_t { none, busy, lent, resting };

struct Place {
  State state = State::none;
  bool returns = false;                 ///< opening the name again gives it back
  bool lazy = false;                    ///< closing it does not wait for its bytes
  std::atomic<bool> unwritten = false;  ///< its stream holds bytes of before the program closed it
  int lost = 0;                         ///< errno of such bytes that could not be written
  int descriptor = -1;
  std::FILE* stream = nullptr;
  struct stat file = {};
  std::uint64_t since = 0;    ///< when it was closed, ns
  std::uint64_t checked = 0;  ///< when its name was last seen to mean it, ns
  std::uint64_t directory = 0;
  int flags = 0;
  std::size_t path_size = 0;
  char path[kLongestPath];
  char mode[kLongestMode];

  bool is(const Name& name) const {
    return flags == name.flags && directory == name.directory && std::string_view(path, path_size) == name.path && name.mode == mode;
  }
  bool is_of(const struct stat& other) const { return file.st_dev == other.st_dev && file.st_ino == other.st_ino; }
  void call(const Name& name) {
    flags = name.flags;
    directory = name.directory;
    path_size = name.path.copy(path, kLongestPath);
    path[path_size] = 0;
    mode[name.mode.copy(mode, kLongestMode - 1)] = 0;
  }
};

extern std::array<Place, kMost> places;
extern std::uint64_t lock;
extern std::atomic<std::uint32_t> in_use;     // places that are not State::none
extern std::atomic<std::uint32_t> unwritten;  // of those, how many have bytes that are not written
[[gnu::tls_model("initial-exec")]] extern constinit thread_local bool inside;

/// Does something with the table. A signal handler that interrupts that finds nothing in it.
template <class Work>
void hold(Work work) {
  if (inside) return;
  inside = true;
  {
    const base::SpinLock held(lock);
    work();
  }
  inside = false;
}

/// With the table held.
void set(Place& place, State state);
void put(Place& place, State state);
/// Of a place that is the caller's.
void set_unwritten(Place& place, bool whether);

/// The first place in a state that `fits`, which is the caller's alone from now on.
template <class Fits>
Place* claim(State state, Fits fits) {
  Place* found = nullptr;
  if (pario_in_vfork_child != 0 || (state != State::none && in_use.load(std::memory_order_acquire) == 0)) return nullptr;
  hold([&] {
    for (Place& place : places)
      if (place.state == state && fits(place)) return set(*(found = &place), State::busy);
  });
  return found;
}

/// Whether a place in a state `fits`; of those in State::busy it may ask for no more than what does not change.
template <class Fits>
bool any(State state, Fits fits) {
  bool found = false;
  if (in_use.load(std::memory_order_acquire) == 0) return false;
  hold([&] {
    for (const Place& place : places) found = found || (place.state == state && fits(place));
  });
  return found;
}

/// This thread writes or closes what others may be about to look at.
class Work {
 public:
  Work();
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

 private:
  bool outer_;
};
bool others_work();
/// Waits for others that work, a moment. False: for no longer (since `begin`, ns), or not at all, in a signal handler that has interrupted
/// one of them.
bool wait_for_others(std::uint64_t begin);

/// In the child of a fork.
void forget_table();

}  // namespace pario::preload::kept
