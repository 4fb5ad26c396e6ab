// What members have to go without where they are unpacked: a file system, or a user, cannot have everything.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/base.hpp"

namespace pario::archive {

/// special: devices, pipes and symbolic links, which are not made at all; link: other names of a file, which are not made, or not of a file
/// that was not; place: what has a name that cannot be had here, or is to be in a directory that has.
enum class Missing : std::uint8_t { owner, permissions, attributes, special, link, place };
/// In words: "owner".
const char* text_of(Missing what);

/// How many members, and why the first of them.
struct Loss {
  std::uint64_t members = 0;
  std::string first = {};
};
using LossTable = std::map<Missing, Loss>;

/// May be told by any thread.
class Losses {
 public:
  /// `strict`: nothing may be lost.
  explicit Losses(bool strict) : strict_(strict) {}

  /// Counts what is impossible here; any other error, or each, is given back.
  base::Status take(Missing what, const base::Error& error);
  /// Whether it would be counted.
  bool is_taken(Missing what, const base::Error& error) const;
  /// When all have ended.
  const LossTable& table() const { return table_; }

 private:
  bool strict_;
  std::mutex mutex_;
  LossTable table_;
};

}  // namespace pario::archive
