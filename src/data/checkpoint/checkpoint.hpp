// Module checkpoint: checksums and the order of compressed bytes for pario.checkpoint. Pure
// functions of memory; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/base.hpp"

namespace pario::checkpoint {

/// A box of a larger array, and its layout in memory. `whole`, `begin`, `shape` and `strides` have
/// one number for each axis, slowest first.
struct Box {
  std::size_t element = 0;                // bytes of an element
  std::span<const std::uint64_t> whole;   // elements of the array
  std::span<const std::uint64_t> begin;   // index of the first element in the array
  std::span<const std::uint64_t> shape;   // elements of the box
  std::span<const std::int64_t> strides;  // bytes from an element to the next one, in memory
};

/// The checksum of a box: a sum modulo 2^64 over its elements, whose terms depend on an element's
/// bytes and its place in the whole array (docs/checkpoint.md). So checksums of boxes that tile an
/// array add up to that of the array. `first` is the first element; all elements must be readable.
std::uint64_t checksum(const std::byte* first, const Box& box);

/// A block of an array, divided into chunks of one shape; the last ones along an axis may be
/// smaller. One number for each axis, slowest first.
struct Grid {
  std::span<const std::uint64_t> begin;   // index of its first element in the array
  std::span<const std::uint64_t> chunk;   // elements of a chunk; at least one
  std::span<const std::uint64_t> counts;  // chunks
};

/// Adds the checksum of each chunk's part of a box to `sums`, which begins with chunk number
/// `first_chunk` (in C order). The box lies in the block, and its chunks lie in `sums`.
void add_chunk_checksums(const std::byte* first, const Box& box, const Grid& grid,
                         std::uint64_t first_chunk, std::span<std::uint64_t> sums);

/// The checksums of boxes that are in `data` one after the other, each in C order. `boxes` has for
/// each: the bytes of an element, the number of axes, and then `whole`, `begin` and `shape`. The
/// caller guarantees that `data` has the size that `boxes` describes.
std::vector<std::uint64_t> checksums(std::span<const std::byte> data,
                                     std::span<const std::uint64_t> boxes);

/// Reorders the bytes of elements as HDF5's filter "shuffle" does, because numbers compress better
/// so: the first bytes of all elements, then the second ones, and so on. `out` has the same size,
/// which is a multiple of `element`.
void shuffle(std::span<const std::byte> elements, std::size_t element, std::byte* out);

/// Reverses shuffle().
void unshuffle(std::span<const std::byte> shuffled, std::size_t element, std::byte* out);

}  // namespace pario::checkpoint
