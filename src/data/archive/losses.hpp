// Losses: metadata and members that the file system or the user cannot create while unpacking.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "core/base/base.hpp"

namespace pario::archive {

/// link: hard links that are not created, or whose file was not; place: members whose name, or
/// whose directory's name, is not possible here; shard: members in a shard that does not exist.
enum class Missing : std::uint8_t {
  owner,
  permissions,
  attributes,
  device,
  pipe,
  symbolic_link,
  link,
  place,
  shard
};
/// In words: "owner".
const char* text_of(Missing what);

/// The number of members, and the reason for the first of them.
struct Loss {
  std::uint64_t members = 0;
  std::string first = {};
};
using LossTable = std::map<Missing, Loss>;

/// Thread-safe.
class Losses {
 public:
  /// `strict`: nothing may be lost.
  explicit Losses(bool strict) : strict_(strict) {}

  /// Counts an impossible operation; returns any other error, and every error if strict.
  base::Status take(Missing what, const base::Error& error);
  /// True if take() would count it.
  bool is_taken(Missing what, const base::Error& error) const;
  /// The losses, when all threads have ended.
  const LossTable& table() const { return table_; }

 private:
  bool strict_;
  std::mutex mutex_;
  LossTable table_;
};

}  // namespace pario::archive
