#include "core/pattern/coverage.hpp"

#include <bit>

#include "core/pattern/pattern.hpp"

namespace pario::pattern {
namespace detail {
namespace {

/// Sets runs less than a word apart: shifts one pattern of a word.
void mark_dense(std::uint64_t* words, std::uint64_t bit, std::uint64_t length, std::uint64_t stride,
                std::uint64_t count) {
  const std::uint64_t run = low_bits(length), head = bit / 64, last = bit + (count - 1) * stride;
  for (; bit <= last && bit / 64 == head; bit += stride) mark_run(words, bit, length);
  if (bit > last) return;
  std::uint64_t pattern = 0;
  for (std::uint64_t at = 0; at < 64; at += stride) pattern |= run << at;
  std::uint64_t word = bit / 64, phase = bit % 64;
  const std::uint64_t step = 64 % stride;
  for (; (word + 1) * 64 <= last; ++word) {
    words[word] |= pattern << phase | run >> (stride - phase);
    phase = phase < step ? phase + stride - step : phase - step;
  }
  words[word] |= run >> (stride - phase);
  for (bit = word * 64 + phase; bit <= last; bit += stride) mark_run(words, bit, length);
}

}  // namespace

void mark_runs(std::uint64_t* words, std::uint64_t bit, std::uint64_t length, std::uint64_t stride,
               std::uint64_t count) {
  if (stride == length) return mark_run(words, bit, length * count);
  if (stride < 64 && count > 4) return mark_dense(words, bit, length, stride, count);
  for (; count > 0; --count, bit += stride) mark_run(words, bit, length);
}

}  // namespace detail

namespace {

std::uint64_t bits_of(std::uint64_t length, std::uint64_t granule) {
  return length / granule + (length % granule != 0 ? 1 : 0);
}

std::uint64_t unite_words(const std::vector<Coverage>& coverages, std::uint64_t word) {
  std::uint64_t bits = 0;
  for (const Coverage& coverage : coverages) bits |= coverage.words[word];
  return bits;
}

/// Returns the first bit at or after `at` that is set (or clear), or `end`.
std::uint64_t find(const std::vector<Coverage>& coverages, std::uint64_t at, std::uint64_t end,
                   bool set) {
  const std::uint64_t flip = set ? 0 : detail::kAll;
  std::uint64_t mask = detail::kAll << (at % 64);
  for (std::uint64_t word = at / 64; word * 64 < end; ++word) {
    const std::uint64_t bits = (unite_words(coverages, word) ^ flip) & mask;
    if (bits != 0)
      return std::min(end, word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits)));
    mask = detail::kAll;
  }
  return end;
}

}  // namespace

std::uint64_t coverage_words(std::uint64_t length, std::uint64_t granule) {
  return bits_of(bits_of(length, granule), 64);
}

CoverageRuns::CoverageRuns(base::Extent range, std::span<const Coverage> coverages)
    : stretch_(range), coverages_(coverages.begin(), coverages.end()) {}

base::Extent CoverageRuns::next() {
  const base::Extent none{stretch_.end, stretch_.end};
  if (coverages_.empty() || stretch_.empty()) return none;
  const std::uint64_t granule = coverages_.front().granule,
                      end = bits_of(stretch_.length(), granule);
  const std::uint64_t first = find(coverages_, at_, end, true);
  at_ = find(coverages_, first, end, false);
  if (first == end) return none;
  return {stretch_.begin + first * granule, std::min(stretch_.end, stretch_.begin + at_ * granule)};
}

}  // namespace pario::pattern
