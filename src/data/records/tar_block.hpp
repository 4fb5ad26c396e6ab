// The header block of the members of tar files, and the records of extended headers
// (POSIX.1-2001, "ustar" and "pax").
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/base/base.hpp"

namespace pario::records {

inline constexpr std::size_t kTarBlock = 512;

/// A text that fills its field has no terminating zero.
struct TarBlock {
  char name[100], mode[8], user[8], group[8], size[12], modified[12], sum[8], type, target[100],
      magic[6], version[2], user_name[32], group_name[32], major[8], minor[8], prefix[155],
      rest[12];
};
static_assert(sizeof(TarBlock) == kTarBlock);

template <std::size_t N>
std::string_view text_in(const char (&field)[N]) {
  return {field, ::strnlen(field, N)};
}

/// Parses octal digits, or a binary number if the first bit is set.
template <std::size_t N>
std::uint64_t number_in(const char (&field)[N]) {
  if ((field[0] & 0x80) == 0) return base::leading_number(text_in(field), 8);
  std::uint64_t value = 0;
  for (std::size_t i = 1; i < N; ++i) value = value << 8 | static_cast<unsigned char>(field[i]);
  return value;
}

/// The sum of all bytes, with blanks in place of the sum itself.
inline std::uint64_t checksum_of(const TarBlock& block) {
  TarBlock summed = block;
  std::memset(summed.sum, ' ', sizeof summed.sum);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kTarBlock; ++i)
    sum += reinterpret_cast<const unsigned char*>(&summed)[i];
  return sum;
}

inline bool has_right_checksum(const TarBlock& block) {
  return number_in(block.sum) == checksum_of(block);
}

struct PaxRecord {
  std::string_view key, value;
};

/// Removes the first record, "LENGTH key=value\n", from those of an extended header, and returns
/// it; nullopt: it is none.
inline std::optional<PaxRecord> next_pax_record(std::string_view& records) {
  std::size_t length = 0;
  const char* end = std::from_chars(records.data(), records.data() + records.size(), length).ptr;
  const auto begin = static_cast<std::size_t>(end - records.data()) + 1;
  if (length < begin + 2 || length > records.size()) return std::nullopt;
  const std::string_view record = records.substr(begin, length - begin - 1);
  const std::size_t equals = record.find('=');
  if (equals == record.npos) return std::nullopt;
  records.remove_prefix(length);
  return PaxRecord{record.substr(0, equals), record.substr(equals + 1)};
}

}  // namespace pario::records
