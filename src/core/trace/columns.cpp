#include "core/trace/columns.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace pario::trace {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the log is little endian and written as it lies in memory");

using Bytes16 = std::uint8_t __attribute__((vector_size(16)));
using Halves8 = std::uint16_t __attribute__((vector_size(16)));
using Words4 = std::uint32_t __attribute__((vector_size(16)));
using Longs2 = std::uint64_t __attribute__((vector_size(16)));
constexpr std::size_t kLanes = 16;  // rows transposed at a time

/// Interleaves the first half of an array of Width * 16 bytes with its second half: rotates the
/// bits of every byte's index left by one. Index = (row: 4 bits, byte: log2 Width bits), so 4 steps
/// turn rows of bytes into planes of rows, and log2 Width more steps turn them back.
template <std::size_t Width>
[[gnu::always_inline]] inline void interleave(Bytes16 (&v)[Width]) {
  Bytes16 out[Width];
  for (std::size_t k = 0; k < Width / 2; ++k) {
    const Bytes16 a = v[k], b = v[k + Width / 2];
    out[2 * k] =
        __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    out[2 * k + 1] =
        __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
  std::memcpy(v, out, sizeof out);
}

static_assert(sizeof(Event) % kLanes == 0 && std::ranges::all_of(kEventColumns,
                                                                 [](const Column& one) {
                                                                   return one.offset % one.width ==
                                                                          0;
                                                                 }),
              "columns are computed as elements of words, which they may not cross");
constexpr std::size_t kWords =
    sizeof(Event) / kLanes;  // words of a row; the bytes of a word become as many planes

/// Returns the bytes of a word that belong to columns of `width` bytes.
constexpr Bytes16 mask_of(std::size_t word, std::size_t width) {
  std::array<std::uint8_t, kLanes> mask{};
  for (const Column& column : kEventColumns)
    for (std::size_t at = column.offset; at < column.offset + column.width; ++at)
      if (column.width == width && at / kLanes == word) mask[at % kLanes] = 0xFF;
  return std::bit_cast<Bytes16>(mask);
}

template <class Values, std::size_t Word>
Bytes16 difference_in(Bytes16 row, Bytes16 before) {
  constexpr Bytes16 kMask = mask_of(Word, sizeof(decltype(Values{}[0])));
  return (Bytes16)((Values)row - (Values)before) & kMask;
}

/// Subtracts a word of the previous row from that of a row, column by column.
template <std::size_t Word>
Bytes16 difference(Bytes16 row, Bytes16 before) {
  return difference_in<Longs2, Word>(row, before) | difference_in<Words4, Word>(row, before) |
         difference_in<Halves8, Word>(row, before) | difference_in<Bytes16, Word>(row, before);
}

template <std::size_t Word>
Bytes16 word_of(const Event& event) {
  Bytes16 word;
  std::memcpy(&word, reinterpret_cast<const std::byte*>(&event) + Word * kLanes, sizeof word);
  return word;
}

/// Encodes one word of 16 rows from `row` on, into 16 bytes of each of its planes. Words without
/// changes are common.
template <std::size_t Word>
void encode_lanes(const Event* events, std::size_t row, std::size_t rows, std::byte* planes) {
  Bytes16 v[kLanes], any{};
  Bytes16 before = row == 0 ? Bytes16{} : word_of<Word>(events[row - 1]);
  for (std::size_t i = 0; i < kLanes; ++i) {
    const Bytes16 now = word_of<Word>(events[row + i]);
    any |= v[i] = difference<Word>(now, before);
    before = now;
  }
  if (std::bit_cast<unsigned __int128>(any) != 0)
    for (int step = 0; step < 4; ++step) interleave(v);
  for (std::size_t plane = 0; plane < kLanes; ++plane)
    std::memcpy(planes + plane * rows + row, &v[plane], kLanes);
}

template <std::size_t Word>
void encode_word(std::span<const Event> events, std::byte* planes) {
  const std::size_t rows = events.size();
  std::size_t row = 0;
  for (; row + kLanes <= rows; row += kLanes) encode_lanes<Word>(events.data(), row, rows, planes);
  for (; row < rows; ++row) {
    const Bytes16 before = row == 0 ? Bytes16{} : word_of<Word>(events[row - 1]);
    const Bytes16 value = difference<Word>(word_of<Word>(events[row]), before);
    for (std::size_t plane = 0; plane < kLanes; ++plane)
      planes[plane * rows + row] = static_cast<std::byte>(value[plane]);
  }
}

template <class T>
void put_rows(const T* differences, std::size_t count, Event* events, std::size_t offset,
              T& value) {
  for (std::size_t i = 0; i < count; ++i) {
    value = static_cast<T>(value + differences[i]);
    std::memcpy(reinterpret_cast<std::byte*>(&events[i]) + offset, &value, sizeof value);
  }
}

template <class T>
void decode_lanes(const std::byte* planes, std::size_t row, std::size_t rows,
                  T (&differences)[kLanes]) {
  Bytes16 v[sizeof(T)];
  for (std::size_t plane = 0; plane < sizeof(T); ++plane)
    std::memcpy(&v[plane], planes + plane * rows + row, kLanes);
  if constexpr (sizeof(T) > 1)
    for (int step = 0; step < std::countr_zero(sizeof(T)); ++step) interleave(v);
  std::memcpy(differences, v, sizeof v);
}

template <class T>
void decode_column(const std::byte* planes, std::span<Event> events, std::size_t offset) {
  const std::size_t rows = events.size();
  T value{0}, differences[kLanes];
  std::size_t row = 0;
  for (; row + kLanes <= rows; row += kLanes) {
    decode_lanes<T>(planes, row, rows, differences);
    put_rows(differences, kLanes, &events[row], offset, value);
  }
  for (; row < rows; ++row) {
    std::uint64_t bits = 0;
    for (std::size_t plane = 0; plane < sizeof(T); ++plane)
      bits |= std::to_integer<std::uint64_t>(planes[plane * rows + row]) << (8 * plane);
    differences[0] = static_cast<T>(bits);
    put_rows(differences, 1, &events[row], offset, value);
  }
}

/// Calls `f` with a value of the column's type.
template <class F>
void with_type(const Column& column, F&& f) {
  switch (column.width) {
    case 8:
      return f(std::uint64_t{});
    case 4:
      return f(std::uint32_t{});
    case 2:
      return f(std::uint16_t{});
    default:
      return f(std::uint8_t{});
  }
}

}  // namespace

void encode_columns(std::span<const Event> events, std::byte* out) {
  [&]<std::size_t... Words>(std::index_sequence<Words...>) {
    (encode_word<Words>(events, out + Words * kLanes * events.size()), ...);
  }(std::make_index_sequence<kWords>{});
}

void decode_columns(const std::byte* columns, std::span<Event> events) {
  for (const Column& column : kEventColumns)
    with_type(column, [&](auto type) {
      decode_column<decltype(type)>(columns + column.offset * events.size(), events, column.offset);
    });
}

}  // namespace pario::trace
