#include "core/trace/counters.hpp"

#include <algorithm>

namespace pario::trace {
namespace {

bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

bool is_number_character(unsigned char c) {
  return is_digit(c) ||
         std::string_view(" \t\r\n+-.,;eEdD").find(static_cast<char>(c)) != std::string_view::npos;
}

bool is_text_character(unsigned char c) {
  return c >= 0x20 ? c != 0x7F : c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

}  // namespace

Sample look_at(std::string_view data) {
  data = data.substr(0, kSampleSize);
  const auto characters = [&](auto&& accepts) {
    return static_cast<std::uint64_t>(std::count_if(
        data.begin(), data.end(), [&](char c) { return accepts(static_cast<unsigned char>(c)); }));
  };
  const std::uint64_t size = data.size();
  const bool text = size != 0 && characters(is_text_character) == size;
  const std::uint64_t digits = characters(is_digit);
  const bool plain = 20 * characters(is_number_character) >= 19 * size && 3 * digits >= size;
  const bool dense = 4 * digits >= 3 * size;  // all digits of doubles, with some markup
  return {size, characters([](unsigned char c) { return c == '\n'; }), text,
          text && (plain || dense)};
}

void apply(Record& row, const Sample& sample, Op op) {
  if (op == Op::read) {
    ++row.sampled_reads;
    row.sampled_read_numbers += sample.numbers;
    return;
  }
  ++row.sampled_writes;
  row.sampled_bytes += sample.bytes;
  row.sampled_text += sample.text;
  row.sampled_numbers += sample.numbers;
  row.lines += sample.lines;
}

}  // namespace pario::trace
