// Copies of strided blocks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pario::pattern::detail {

/// Copies `count` blocks of `length` bytes. The two sides must not overlap.
void copy_blocks(std::byte* to, std::int64_t to_stride, const std::byte* from,
                 std::int64_t from_stride, std::uint64_t length, std::uint64_t count);

/// Copies with non-temporal stores, where blocks cover whole cache lines; call fence_stores()
/// before others read.
void stream_blocks(std::byte* to, std::int64_t to_stride, const std::byte* from,
                   std::int64_t from_stride, std::uint64_t length, std::uint64_t count);
void fence_stores();

}  // namespace pario::pattern::detail
