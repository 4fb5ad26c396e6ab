#include "core/file/memory_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pario::file {

base::Status MemoryBlocks::read(std::uint64_t offset, std::span<std::byte> out,
                                const Fetch& fetch) {
  while (!out.empty()) {
    const std::uint64_t first = offset / kBlock, end = (offset + out.size()) / kBlock;
    if (base::Status status = fetch_missing(first, end, fetch); !status) return status;
    const auto bytes = std::span<const std::byte>(blocks_[first].bytes).subspan(offset % kBlock);
    const std::uint64_t length = std::min(bytes.size(), out.size());
    std::memcpy(out.data(), bytes.data(), length);
    offset += length;
    out = out.subspan(length);
  }
  return {};
}

base::Status MemoryBlocks::fetch_missing(std::uint64_t first, std::uint64_t end,
                                         const Fetch& fetch) {
  std::vector<std::unique_lock<std::mutex>> locks;
  locks.emplace_back(blocks_[first].mutex);
  if (!blocks_[first].bytes.empty()) return {};
  std::uint64_t last = first + 1;
  for (; last < end; ++last) {
    std::unique_lock lock(blocks_[last].mutex, std::try_to_lock);
    if (!lock || !blocks_[last].bytes.empty()) break;
    locks.push_back(std::move(lock));
  }
  const std::uint64_t begin = first * kBlock;
  std::vector<std::byte> bytes(std::min(last * kBlock, size_) - begin);
  if (base::Status status = fetch(begin, bytes); !status) return status;
  for (std::uint64_t number = first; number < last; ++number) {
    const auto part = std::span(bytes).subspan((number - first) * kBlock);
    blocks_[number].bytes.assign(part.begin(), part.begin() + std::min(part.size(), kBlock));
  }
  return {};
}

}  // namespace pario::file
