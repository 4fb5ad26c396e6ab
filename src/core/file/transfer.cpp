#include "core/file/transfer.hpp"

#include <cerrno>
#include <chrono>
#include <numeric>
#include <thread>

namespace pario::file {

bool RetryPolicy::again(int number) {
  constexpr unsigned kMostPauses = 320;
  if (number == EINTR) return true;
  if (number != EAGAIN || pauses_ == kMostPauses) return false;
  std::this_thread::sleep_for(std::chrono::milliseconds(std::min(++pauses_, 100U)));
  return true;
}

std::span<iovec> without_front(std::span<iovec> pieces, std::uint64_t bytes) {
  while (!pieces.empty() && bytes >= pieces.front().iov_len) {
    bytes -= pieces.front().iov_len;
    pieces = pieces.subspan(1);
  }
  if (bytes > 0 && !pieces.empty()) {
    iovec& cut = pieces.front();
    cut = {static_cast<std::byte*>(cut.iov_base) + bytes, cut.iov_len - bytes};
  }
  return pieces;
}

std::vector<iovec> first_bytes(std::span<const iovec> pieces, std::uint64_t bytes) {
  std::vector<iovec> first;
  for (const iovec& piece : pieces) {
    if (bytes == 0) break;
    const std::uint64_t length = std::min<std::uint64_t>(piece.iov_len, bytes);
    if (length > 0) first.push_back({piece.iov_base, length});
    bytes -= length;
  }
  return first;
}

std::uint64_t total_length(std::span<const iovec> pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const iovec& piece) { return sum + piece.iov_len; });
}

}  // namespace pario::file
