// Copies blocks at one stride to blocks at another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pario::pattern::detail {

/// `count` blocks of `length` bytes. The two sides must not overlap.
void copy_blocks(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride, std::uint64_t length,
                 std::uint64_t count);

/// The same past the caches, as far as blocks cover whole cache lines; fence_stores() before others may look.
void stream_blocks(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride, std::uint64_t length,
                   std::uint64_t count);
void fence_stores();

}  // namespace pario::pattern::detail
