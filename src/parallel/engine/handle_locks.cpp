#include "parallel/engine/handle_locks.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace pario::engine {
namespace {

constexpr std::uint64_t kNodes = std::uint64_t{1} << 20;  // bytes of a handle: one for each node
constexpr base::Extent kAll{std::uint64_t{1} << 62, INT64_MAX};
constexpr std::uint64_t kHandles = (kAll.end - kAll.begin) / kNodes;
/// Locked while a handle registers, so that new read-modify-writes cannot starve it.
constexpr base::Extent kRegistration{kAll.begin - 1, kAll.begin};
/// Locked briefly by is_locked_by_other_program().
constexpr base::Extent kProbe{kRegistration.begin - 1, kRegistration.begin};

}  // namespace

HandleLocks::HandleLocks(file::File& file, std::uint64_t handle, Lease lease)
    : file_(file),
      own_(base::Extent::at(kAll.begin + handle % kHandles * kNodes, kNodes)),
      lease_(lease) {}

/// True if a program that does not use these locks, perhaps this one, has locked the whole file:
/// waiting for it might never end.
bool HandleLocks::is_locked_by_other_program() {
  for (int tries = 0; tries < 100; ++tries) {
    const base::Result<bool> locked = file_.try_lock(kProbe, true);
    if (!locked.ok()) return true;
    if (*locked) return static_cast<void>(file_.unlock(kProbe)), false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

base::Status HandleLocks::register_writer(int node) {
  const base::Result<bool> alone = file_.try_lock(kRegistration, true);
  bool registering = alone.ok() && *alone;
  if (!registering) {
    if (is_locked_by_other_program()) return {};
    registering = file_.lock(kRegistration, true).ok();
  }
  const std::uint64_t place = own_.begin + static_cast<std::uint64_t>(node) % kNodes;
  const base::Status placed = file_.lock(base::Extent::at(place, 1), true);
  if (!registering) return {};
  static_cast<void>(file_.unlock(kRegistration));
  return placed;
}

bool HandleLocks::try_begin() {
  const std::scoped_lock alone(mutex_);
  if (!held_) {
    if (!lock_others()) return false;
    held_ = true;
    since_ns_ = base::monotonic_ns();
  }
  ++active_;
  return true;
}

void HandleLocks::end() {
  {
    const std::scoped_lock alone(mutex_);
    if (--active_ > 0) return;
    last_use_ns_ = base::monotonic_ns();
    const bool too_long = last_use_ns_ - since_ns_ > lease_.longest_ns;
    if (++uses_ <= lease_.uses_before || too_long) return release();
    if (watched_) return;
    watched_ = true;
  }
  start_watcher();
}

void HandleLocks::end_lease() {
  const std::scoped_lock alone(mutex_);
  if (held_) release();
  closing_ = 1;
  if (watched_) base::futex_wake(closing_);
}

/// Gives the locks back, with the mutex.
void HandleLocks::release() {
  held_ = false;
  unlock_others();
}

void HandleLocks::start_watcher() {
  const auto watch = [this] {
    watch_lease();
    return base::Result<std::uint64_t>(0);
  };
  if (watcher_.submit(std::make_shared<Task>(watch))) return;
  const std::scoped_lock alone(mutex_);
  watched_ = false;
  if (held_ && active_ == 0) release();
}

/// Runs in a thread until the locks are given back.
void HandleLocks::watch_lease() {
  do {
    base::futex_wait(closing_, 0, lease_.idle_ns);
  } while (closing_ == 0 && !release_idle());
}

/// True if the rank has no lease any more.
bool HandleLocks::release_idle() {
  const std::scoped_lock alone(mutex_);
  if (active_ > 0 || (held_ && base::monotonic_ns() - last_use_ns_ < lease_.idle_ns)) return false;
  if (held_) release();
  watched_ = false;
  return true;
}

bool HandleLocks::lock_others() {
  const base::Extent parts[] = {{kRegistration.begin, own_.begin}, {own_.end, kAll.end}};
  const bool all = std::ranges::all_of(parts, [this](base::Extent part) {
    const base::Result<bool> locked = file_.try_lock(part, false);
    return locked.ok() && *locked;
  });
  static_cast<void>(file_.unlock(kRegistration));
  if (!all) unlock_others();
  return all;
}

void HandleLocks::unlock_others() {
  static_cast<void>(file_.unlock({kAll.begin, own_.begin}));
  static_cast<void>(file_.unlock({own_.end, kAll.end}));
}

}  // namespace pario::engine
