#include "core/pattern/copy.hpp"

#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace pario::pattern::detail {
namespace {

struct Side {
  std::byte* at;
  std::int64_t stride;
};
struct Source {
  const std::byte* at;
  std::int64_t stride;
};

/// Copies with a length known to the compiler: a few moves without a call.
template <std::size_t length>
void copy_fixed(Side to, Source from, std::uint64_t count) {
  for (; count > 0; --count, to.at += to.stride, from.at += from.stride)
    std::memcpy(to.at, from.at, length);
}

/// Copies multiples of 16 bytes inline, up to the size at which memcpy is as fast.
void copy_sixteens(Side to, Source from, std::uint64_t length, std::uint64_t count) {
  for (; count > 0; --count, to.at += to.stride, from.at += from.stride)
    for (std::uint64_t at = 0; at < length; at += 16) std::memcpy(to.at + at, from.at + at, 16);
}

/// Copies any length from `size` to twice of it: from both ends, which meet or overlap.
template <class Word>
void copy_ends(std::byte* to, const std::byte* from, std::uint64_t length) {
  Word head, tail;
  std::memcpy(&head, from, sizeof(Word));
  std::memcpy(&tail, from + length - sizeof(Word), sizeof(Word));
  std::memcpy(to, &head, sizeof(Word));
  std::memcpy(to + length - sizeof(Word), &tail, sizeof(Word));
}

struct Sixteen {
  std::uint64_t words[2];
};
struct ThirtyTwo {
  std::uint64_t words[4];
};

/// Copies short pieces without a call.
void copy_one(std::byte* to, const std::byte* from, std::uint64_t length) {
  if (length > 64) {
    std::memcpy(to, from, length);
  } else if (length >= 32) {
    copy_ends<ThirtyTwo>(to, from, length);
  } else if (length >= 16) {
    copy_ends<Sixteen>(to, from, length);
  } else if (length >= 8) {
    copy_ends<std::uint64_t>(to, from, length);
  } else if (length >= 4) {
    copy_ends<std::uint32_t>(to, from, length);
  } else {
    for (std::uint64_t i = 0; i < length; ++i) to[i] = from[i];
  }
}

void copy_any(Side to, Source from, std::uint64_t length, std::uint64_t count) {
  for (; count > 0; --count, to.at += to.stride, from.at += from.stride)
    copy_one(to.at, from.at, length);
}

#ifdef __SSE2__
constexpr std::uint64_t kLine = 64;

void stream_lines(std::byte* to, const std::byte* from, std::uint64_t lines) {
  for (; lines > 0; --lines, to += kLine, from += kLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* line = reinterpret_cast<__m128i*>(to);
    const __m128i parts[] = {_mm_loadu_si128(source), _mm_loadu_si128(source + 1),
                             _mm_loadu_si128(source + 2), _mm_loadu_si128(source + 3)};
    for (int i = 0; i < 4; ++i) _mm_stream_si128(line + i, parts[i]);
  }
}

void stream_one(std::byte* to, const std::byte* from, std::uint64_t length) {
  const std::uint64_t head = -reinterpret_cast<std::uintptr_t>(to) % kLine;
  if (length < head + kLine) return copy_one(to, from, length);
  copy_one(to, from, head);
  const std::uint64_t lines = (length - head) / kLine, done = head + lines * kLine;
  stream_lines(to + head, from + head, lines);
  copy_one(to + done, from + done, length - done);
}
#endif

}  // namespace

#ifdef __SSE2__
void stream_blocks(std::byte* to, std::int64_t to_stride, const std::byte* from,
                   std::int64_t from_stride, std::uint64_t length, std::uint64_t count) {
  if (length < kLine) return copy_blocks(to, to_stride, from, from_stride, length, count);
  for (; count > 0; --count, to += to_stride, from += from_stride) stream_one(to, from, length);
}

void fence_stores() { _mm_sfence(); }
#else
void stream_blocks(std::byte* to, std::int64_t to_stride, const std::byte* from,
                   std::int64_t from_stride, std::uint64_t length, std::uint64_t count) {
  copy_blocks(to, to_stride, from, from_stride, length, count);
}

void fence_stores() {}
#endif

void copy_blocks(std::byte* to, std::int64_t to_stride, const std::byte* from,
                 std::int64_t from_stride, std::uint64_t length, std::uint64_t count) {
  const Side side{to, to_stride};
  const Source source{from, from_stride};
  if (count == 1) return copy_one(to, from, length);
  switch (length) {
    case 1:
      return copy_fixed<1>(side, source, count);
    case 2:
      return copy_fixed<2>(side, source, count);
    case 4:
      return copy_fixed<4>(side, source, count);
    case 8:
      return copy_fixed<8>(side, source, count);
    case 16:
      return copy_fixed<16>(side, source, count);
    case 24:
      return copy_fixed<24>(side, source, count);
    case 32:
      return copy_fixed<32>(side, source, count);
    case 48:
      return copy_fixed<48>(side, source, count);
    case 64:
      return copy_fixed<64>(side, source, count);
    case 128:
      return copy_fixed<128>(side, source, count);
    case 256:
      return copy_fixed<256>(side, source, count);
    default:
      break;
  }
  if (length % 16 == 0 && length <= 256) return copy_sixteens(side, source, length, count);
  copy_any(side, source, length, count);
}

}  // namespace pario::pattern::detail
