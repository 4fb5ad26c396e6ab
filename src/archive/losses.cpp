#include "archive/losses.hpp"

#include <algorithm>
#include <cerrno>

namespace pario::archive {
namespace {

/// How file systems and the kernel say that something is not to be had; EINVAL: of owners that a container does not know.
constexpr int kImpossible[] = {EPERM, EACCES, ENOTSUP, ENOSYS, EINVAL};
/// The same of attributes that a file system has no room for.
constexpr int kTooLarge[] = {ENOSPC, E2BIG, ERANGE};

bool is_impossible(Missing what, int number) {
  return std::ranges::count(kImpossible, number) > 0 || (what == Missing::attributes && std::ranges::count(kTooLarge, number) > 0);
}

}  // namespace

const char* text_of(Missing what) {
  constexpr const char* kTexts[] = {"owner", "permissions", "extended attributes", "devices, pipes and symbolic links"};
  return kTexts[static_cast<int>(what)];
}

base::Status Losses::take(Missing what, const base::Error& error) {
  if (strict_ || !is_impossible(what, error.number)) return error;
  const std::scoped_lock lock(mutex_);
  Loss& loss = table_[what];
  if (loss.members++ == 0) loss.first = error.text();
  return {};
}

}  // namespace pario::archive
