// Room checkpoint: what pario.checkpoint needs of the processor. Functions of memory; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/base.hpp"

namespace pario::checkpoint {

/// A box of a larger array, and how it lies in memory. `whole`, `begin`, `shape` and `strides` have
/// one number for each axis, slowest first.
struct Box {
  std::size_t element = 0;                // bytes of one
  std::span<const std::uint64_t> whole;   // elements of the array
  std::span<const std::uint64_t> begin;   // where in it the box begins
  std::span<const std::uint64_t> shape;   // elements of the box
  std::span<const std::int64_t> strides;  // bytes from one to the next, in memory
};

/// A sum modulo 2^64, over the elements, of a number made of an element's bytes and of its place in
/// the whole array: checksums of boxes that tile an array add up to that of the array, however it
/// is divided. The terms are defined in docs/checkpoint.md. `first` is the first element; all that
/// the box describes can be read.
std::uint64_t checksum(const std::byte* first, const Box& box);

/// A block of an array, divided into chunks of one shape; those at its far ends are smaller. One
/// number for each axis, slowest first.
struct Grid {
  std::span<const std::uint64_t> begin;   // where in the array the block begins
  std::span<const std::uint64_t> chunk;   // elements of a chunk; at least one
  std::span<const std::uint64_t> counts;  // chunks
};

/// Adds the checksum of each chunk's part of a box to `sums`, which begins with chunk number
/// `first_chunk` (in C order). The box lies in the block, and its chunks lie in `sums`.
void add_chunk_checksums(const std::byte* first, const Box& box, const Grid& grid,
                         std::uint64_t first_chunk, std::span<std::uint64_t> sums);

/// Those of boxes that lie in `data` one behind the other, each in order. `boxes` describes one
/// after the other: the bytes of an element, the number of axes, and for these `whole`, `begin` and
/// `shape`. The caller has made sure that `data` is what `boxes` says.
std::vector<std::uint64_t> checksums(std::span<const std::byte> data,
                                     std::span<const std::uint64_t> boxes);

}  // namespace pario::checkpoint
