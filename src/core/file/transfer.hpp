// Complete transfers made of attempts that may be short.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <span>
#include <vector>

namespace pario::file {

/// The result of a transfer: bytes moved, and the errno that ended it (0: complete, or an attempt
/// that moved nothing).
struct Outcome {
  std::uint64_t moved = 0;
  int number = 0;
};

/// Decides whether a failed attempt is repeated: after EINTR always, after EAGAIN for about half a
/// minute, with pauses.
class RetryPolicy {
 public:
  bool again(int number);

 private:
  unsigned pauses_ = 0;
};

/// The pieces without their first `bytes` bytes and without empty pieces in front. Changes the
/// piece that is cut.
std::span<iovec> without_front(std::span<iovec> pieces, std::uint64_t bytes);

/// The pieces of the first `bytes` bytes.
std::vector<iovec> first_bytes(std::span<const iovec> pieces, std::uint64_t bytes);

std::uint64_t total_length(std::span<const iovec> pieces);

/// Moves all the pieces. `attempt(offset, pieces)` gets at most IOV_MAX pieces and returns the
/// bytes it moved, or a negative errno.
template <class Attempt>
Outcome transfer(std::uint64_t offset, std::span<iovec> pieces, Attempt attempt) {
  Outcome outcome;
  RetryPolicy retries;
  for (pieces = without_front(pieces, 0); !pieces.empty();) {
    const long moved = attempt(offset + outcome.moved,
                               pieces.first(std::min<std::size_t>(pieces.size(), IOV_MAX)));
    if (moved == 0) return outcome;
    if (moved < 0) {
      if (retries.again(static_cast<int>(-moved))) continue;
      outcome.number = static_cast<int>(-moved);
      return outcome;
    }
    retries = {};
    outcome.moved += static_cast<std::uint64_t>(moved);
    pieces = without_front(pieces, static_cast<std::uint64_t>(moved));
  }
  return outcome;
}

}  // namespace pario::file
