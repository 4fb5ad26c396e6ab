#include "trace/columns.hpp"

#include <bit>
#include <cstring>

namespace pario::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "the log is little endian and written as it lies in memory");

using Bytes16 = std::uint8_t __attribute__((vector_size(16)));
constexpr std::size_t kLanes = 16;  // rows that are transposed at a time

/// Interleaves the first half of an array of Width * 16 bytes with its second half: the bits of every byte's index rotate left by one.
/// Index = (row: 4 bits, byte: log2 Width bits), so 4 steps turn rows of bytes into planes of rows, and log2 Width more turn them back.
template <std::size_t Width>
void interleave(Bytes16 (&v)[Width]) {
  Bytes16 out[Width];
  for (std::size_t k = 0; k < Width / 2; ++k) {
    const Bytes16 a = v[k], b = v[k + Width / 2];
    out[2 * k] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    out[2 * k + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
  std::memcpy(v, out, sizeof out);
}

template <class T>
T field(const Event& event, std::size_t offset) {
  T value;
  std::memcpy(&value, reinterpret_cast<const std::byte*>(&event) + offset, sizeof value);
  return value;
}

template <class T>
T difference(const Event* events, std::size_t row, std::size_t offset) {
  const T before = row == 0 ? T{0} : field<T>(events[row - 1], offset);
  return static_cast<T>(field<T>(events[row], offset) - before);
}

/// 16 rows starting at `row`, to 16 bytes in each plane.
template <class T>
void encode_lanes(const Event* events, std::size_t row, std::size_t rows, std::size_t offset, std::byte* planes) {
  T differences[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) differences[i] = difference<T>(events, row + i, offset);
  Bytes16 v[sizeof(T)];
  std::memcpy(v, differences, sizeof v);
  if constexpr (sizeof(T) > 1)
    for (int step = 0; step < 4; ++step) interleave(v);
  for (std::size_t plane = 0; plane < sizeof(T); ++plane) std::memcpy(planes + plane * rows + row, &v[plane], kLanes);
}

template <class T>
void encode_column(std::span<const Event> events, std::size_t offset, std::byte* planes) {
  const std::size_t rows = events.size();
  std::size_t row = 0;
  for (; row + kLanes <= rows; row += kLanes) encode_lanes<T>(events.data(), row, rows, offset, planes);
  for (; row < rows; ++row) {
    const T value = difference<T>(events.data(), row, offset);
    for (std::size_t plane = 0; plane < sizeof(T); ++plane)
      planes[plane * rows + row] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * plane));
  }
}

template <class T>
void put_rows(const T* differences, std::size_t count, Event* events, std::size_t offset, T& value) {
  for (std::size_t i = 0; i < count; ++i) {
    value = static_cast<T>(value + differences[i]);
    std::memcpy(reinterpret_cast<std::byte*>(&events[i]) + offset, &value, sizeof value);
  }
}

template <class T>
void decode_lanes(const std::byte* planes, std::size_t row, std::size_t rows, T (&differences)[kLanes]) {
  Bytes16 v[sizeof(T)];
  for (std::size_t plane = 0; plane < sizeof(T); ++plane) std::memcpy(&v[plane], planes + plane * rows + row, kLanes);
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
  for (const Column& column : kEventColumns)
    with_type(column, [&](auto type) { encode_column<decltype(type)>(events, column.offset, out + column.offset * events.size()); });
}

void decode_columns(const std::byte* columns, std::span<Event> events) {
  for (const Column& column : kEventColumns)
    with_type(column, [&](auto type) { decode_column<decltype(type)>(columns + column.offset * events.size(), events, column.offset); });
}

}  // namespace pario::trace
