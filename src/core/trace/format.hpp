// The blocks of a process log (docs/log-format.md, Blocks).
#pragma once

#include <cstddef>
#include <cstdint>

namespace pario::trace {

inline constexpr std::uint32_t kBlockMagic = 0x4B4C4250;
inline constexpr std::uint16_t kLogVersion = 1;
inline constexpr std::size_t kPage = 4096;

enum class BlockKind : std::uint16_t {
  process = 1,
  schema,
  records,
  strings,
  thread,
  events,
  notes,
  sites
};
inline constexpr std::size_t kBlockKinds = 9;

struct BlockHeader {
  std::uint32_t magic;
  BlockKind kind;
  std::uint16_t version;
  std::uint64_t size, used, checksum;
  std::uint32_t index, count;
  std::uint64_t aux0, aux1, aux2;

  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
  std::size_t capacity() const { return size - sizeof(BlockHeader); }
};
static_assert(sizeof(BlockHeader) == 64);

/// A row of a thread block: the calls of a thread to one function.
struct FunctionRow {
  std::uint64_t calls, ticks, bytes, longest, failed;
};

/// A row of a sites block: the calls of a thread with one stack to one function on one file.
struct SiteRow {
  std::uint32_t stack, file, function, unused;
  std::uint64_t calls, ticks, bytes;
};
static_assert(sizeof(SiteRow) == 40);

constexpr std::size_t whole_pages(std::size_t size) { return (size + kPage - 1) / kPage * kPage; }

}  // namespace pario::trace
