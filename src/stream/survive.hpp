// Buffers that outlive their process: they lie in shared memory, which a keeper (`pario run`, python/pario/launch/keeper.py) holds, too,
// and whose written bytes it writes to the file when the process dies without having done so.
#pragma once

#include <cstdint>
#include <string_view>

#include "stream/buffer.hpp"

namespace pario::stream::survive {

/// Shared memory: a Header, `count` buffers, and their bytes.
struct Region {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::uint64_t number = 0;  ///< by which the keeper knows it
  std::uint32_t count = 0;
  Buffer* buffers = nullptr;
};

/// As the keeper reads it: where things are, in bytes from the beginning, and in a buffer.
struct Header {
  std::uint64_t magic, size, count, buffers, stride, data, begin, state, runs, run_count;
};
inline constexpr std::uint64_t kMagic = 0x31454B4F49524150;

/// Where the keeper of this host listens: a name of an abstract socket; empty: there is none.
void set_keeper(std::string_view name);
/// Makes at most `count` buffers of `size` bytes, as many as there is memory for, and hands them to the keeper with the file of a
/// descriptor. Empty, or why that is not possible.
std::string_view begin(Region& region, int descriptor, std::uint64_t size, std::uint32_t count);
/// The file is as its bytes say: the keeper lets go of it.
void end(Region& region);
/// In the child of a fork, which does not have the memory.
void forget(Region& region);

}  // namespace pario::stream::survive
