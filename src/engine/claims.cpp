#include "engine/claims.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace pario::engine {
namespace {

constexpr std::uint64_t kNodes = std::uint64_t{1} << 20;  // bytes of a handle: one for each node
constexpr base::Extent kAll{std::uint64_t{1} << 62, INT64_MAX};
constexpr std::uint64_t kHandles = (kAll.end - kAll.begin) / kNodes;
/// Shut by who comes to stay: nobody begins any more, so that he need not wait for ever.
constexpr base::Extent kDoor{kAll.begin - 1, kAll.begin};
/// Locked for a moment only.
constexpr base::Extent kProbe{kDoor.begin - 1, kDoor.begin};

}  // namespace

Claims::Claims(storage::File& file, std::uint64_t handle)
    : file_(file), own_(base::Extent::at(kAll.begin + handle % kHandles * kNodes, kNodes)) {}

/// Somebody who knows nothing of this may have locked all of the file, perhaps this very program: he cannot be waited for.
bool Claims::is_shut_by_strangers() {
  for (int tries = 0; tries < 100; ++tries) {
    const base::Result<bool> locked = file_.try_lock(kProbe, true);
    if (!locked.ok()) return true;
    if (*locked) return static_cast<void>(file_.unlock(kProbe)), false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void Claims::stay(int node) {
  if (is_shut_by_strangers()) return;
  const bool shut = file_.lock(kDoor, true).ok();
  static_cast<void>(file_.lock(base::Extent::at(own_.begin + static_cast<std::uint64_t>(node) % kNodes, 1), true));
  if (shut) static_cast<void>(file_.unlock(kDoor));
}

bool Claims::begin() {
  const std::scoped_lock alone(mutex_);
  if (begun_ == 0 && !lock_others()) return false;
  ++begun_;
  return true;
}

void Claims::end() {
  const std::scoped_lock alone(mutex_);
  if (--begun_ == 0) unlock_others();
}

bool Claims::lock_others() {
  const base::Extent parts[] = {kDoor, {kAll.begin, own_.begin}, {own_.end, kAll.end}};
  const bool all = std::ranges::all_of(parts, [this](base::Extent part) {
    const base::Result<bool> locked = file_.try_lock(part, false);
    return locked.ok() && *locked;
  });
  static_cast<void>(file_.unlock(kDoor));
  if (!all) unlock_others();
  return all;
}

void Claims::unlock_others() {
  static_cast<void>(file_.unlock({kAll.begin, own_.begin}));
  static_cast<void>(file_.unlock({own_.end, kAll.end}));
}

}  // namespace pario::engine
