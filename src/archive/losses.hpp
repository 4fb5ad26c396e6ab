// What members have to go without where they are unpacked: a file system, or a user, cannot have everything.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/base.hpp"

namespace pario::archive {

/// special: devices, pipes and symbolic links, which are not made at all.
enum class Missing : std::uint8_t { owner, permissions, attributes, special };
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
  /// When all have ended.
  const LossTable& table() const { return table_; }

 private:
  bool strict_;
  std::mutex mutex_;
  LossTable table_;
};

}  // namespace pario::archive
