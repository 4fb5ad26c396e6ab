#include "data/archive/losses.hpp"

#include <algorithm>
#include <cerrno>
#include <span>

namespace pario::archive {
namespace {

/// Errors of operations that the file system or the user cannot do; EINVAL: owners unknown to a
/// container.
constexpr int kImpossible[] = {EPERM, EACCES, ENOTSUP, ENOSYS, EINVAL};
/// Errors of attributes that are too large for the file system.
constexpr int kTooLarge[] = {ENOSPC, E2BIG, ERANGE};
/// Errors of names: too long, invalid characters, in a directory that was not created.
constexpr int kNoPlace[] = {ENAMETOOLONG, EILSEQ, EINVAL, ENOENT};
/// Errors of links: to a file that was not created, too many, or across file systems.
constexpr int kNoLink[] = {ENOENT, EMLINK, EXDEV};

bool is_one_of(std::span<const int> numbers, int number) {
  return std::ranges::count(numbers, number) > 0;
}

bool is_impossible(Missing what, int number) {
  if (what == Missing::shard) return number == ENOENT;
  if (what == Missing::place) return is_one_of(kNoPlace, number);
  if (what == Missing::attributes && is_one_of(kTooLarge, number)) return true;
  const bool is_special =
      what == Missing::device || what == Missing::pipe || what == Missing::symbolic_link;
  if (is_special && is_one_of(kNoPlace, number)) return true;
  if (what == Missing::link && (is_one_of(kNoLink, number) || is_one_of(kNoPlace, number)))
    return true;
  return is_one_of(kImpossible, number);
}

}  // namespace

const char* text_of(Missing what) {
  constexpr const char* kTexts[] = {"owner",      "permissions", "extended attributes",
                                    "devices",    "pipes",       "symbolic links",
                                    "hard links", "all",         "the shard"};
  return kTexts[static_cast<int>(what)];
}

bool Losses::is_taken(Missing what, const base::Error& error) const {
  return !strict_ && is_impossible(what, error.number);
}

base::Status Losses::take(Missing what, const base::Error& error) {
  if (!is_taken(what, error)) return error;
  const std::scoped_lock lock(mutex_);
  Loss& loss = table_[what];
  if (loss.members++ == 0) loss.first = error.text();
  return {};
}

}  // namespace pario::archive
