// The notes of the log: JSON objects, one per line.
#pragma once

#include <string_view>

#include "core/trace/format.hpp"

namespace pario::trace {

class Log;

inline constexpr std::size_t kLongestNote = 256 << 10;

class Notes {
 public:
  /// Appends one line; false without memory or disk space.
  bool add(Log& log, std::string_view json);

 private:
  std::uint64_t lock_ = 0;
  BlockHeader* block_ = nullptr;
};

}  // namespace pario::trace
