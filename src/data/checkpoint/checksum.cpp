#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "data/checkpoint/checkpoint.hpp"

namespace pario::checkpoint {
namespace {

constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15;

/// The finisher of SplitMix64: a bijection, so that each change of a single word is detected.
[[gnu::always_inline]] inline std::uint64_t mix(std::uint64_t word) {
  word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9;
  word = (word ^ word >> 27) * 0x94D049BB133111EB;
  return word ^ word >> 31;
}

/// The number added to the word at `place` of the array.
[[gnu::always_inline]] inline std::uint64_t key_of(std::uint64_t place) {
  return (place + 1) * kStep;
}

/// Consecutive elements along the last axis of a box.
struct Row {
  const std::byte* first;
  std::uint64_t count;
  std::int64_t stride;
  std::uint64_t place;  // of the first one in the array
};

template <class Word>
[[gnu::always_inline]] inline std::uint64_t sum_of_words(const Row& row, std::int64_t stride) {
  std::uint64_t sum = 0;
  std::uint64_t key = key_of(row.place);  // an addition costs less than a multiplication
  for (std::uint64_t i = 0; i < row.count; ++i, key += kStep) {
    Word word;
    std::memcpy(&word, row.first + static_cast<std::int64_t>(i) * stride, sizeof word);
    sum += mix(word + key);
  }
  return sum;
}

#if defined(__x86_64__)
/// Several times as fast, because these processors multiply eight 64-bit words at once.
template <class Word>
__attribute__((target("avx512f,avx512dq"))) std::uint64_t sum_by_eights(const Row& row) {
  return sum_of_words<Word>(row, sizeof(Word));
}
#endif

template <class Word>
std::uint64_t sum_of_words(const Row& row) {
  if (row.stride != sizeof(Word)) return sum_of_words<Word>(row, row.stride);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq")) return sum_by_eights<Word>(row);
#endif
  return sum_of_words<Word>(row, sizeof(Word));
}

/// Sums elements of other sizes, word by word; each word has its own place, and the last one is
/// padded with zeros.
std::uint64_t sum_of_elements(const Row& row, std::size_t element) {
  const std::uint64_t words = (element + 7) / 8;
  std::uint64_t sum = 0;
  const std::byte* at = row.first;
  for (std::uint64_t i = 0; i < row.count; ++i, at += row.stride)
    for (std::uint64_t j = 0; j < words; ++j) {
      std::uint64_t word = 0;
      std::memcpy(&word, at + 8 * j, std::min<std::size_t>(8, element - 8 * j));
      sum += mix(word + key_of((row.place + i) * words + j));
    }
  return sum;
}

std::uint64_t sum_of(const Row& row, std::size_t element) {
  switch (element) {
    case 1:
      return sum_of_words<std::uint8_t>(row);
    case 2:
      return sum_of_words<std::uint16_t>(row);
    case 4:
      return sum_of_words<std::uint32_t>(row);
    case 8:
      return sum_of_words<std::uint64_t>(row);
    default:
      return sum_of_elements(row, element);
  }
}

/// Advances `index` to the next row; false after the last one.
bool step(std::vector<std::uint64_t>& index, const Box& box) {
  for (std::size_t axis = index.size(); axis-- > 0;) {
    if (++index[axis] < box.shape[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

Row row_at(const std::byte* first, const Box& box, const std::vector<std::uint64_t>& index) {
  const std::size_t last = box.shape.size() - 1;
  std::uint64_t place = 0;
  for (std::size_t axis = 0; axis < last; ++axis) {
    place = (place + box.begin[axis] + index[axis]) * box.whole[axis + 1];
    first += static_cast<std::int64_t>(index[axis]) * box.strides[axis];
  }
  return {first, box.shape[last], box.strides[last], place + box.begin[last]};
}

/// The number of the chunk in which a row of a box begins, without its part for the last axis.
std::uint64_t chunk_before_last_axis(const Box& box, const Grid& grid,
                                     const std::vector<std::uint64_t>& index) {
  std::uint64_t number = 0;
  for (std::size_t axis = 0; axis < index.size(); ++axis)
    number = number * grid.counts[axis] +
             (box.begin[axis] - grid.begin[axis] + index[axis]) / grid.chunk[axis];
  return number * grid.counts.back();
}

/// Adds the sums of a row to those of its chunks. `at`: the index of its first element along the
/// last axis of the block.
void add_row(Row row, std::size_t element, std::uint64_t at, std::uint64_t chunk,
             std::span<std::uint64_t> sums) {
  for (std::uint64_t number = at / chunk; row.count > 0; ++number) {
    const std::uint64_t count = std::min(row.count, (number + 1) * chunk - at);
    sums[number] += sum_of({row.first, count, row.stride, row.place}, element);
    row = {row.first + static_cast<std::int64_t>(count) * row.stride, row.count - count, row.stride,
           row.place + count};
    at += count;
  }
}

bool is_empty(const Box& box) {
  return std::ranges::find(box.shape, std::uint64_t{0}) != box.shape.end();
}

/// The strides in bytes of a box that is in memory in C order.
std::vector<std::int64_t> strides_in_order(const Box& box) {
  std::vector<std::int64_t> strides(box.shape.size());
  auto stride = static_cast<std::int64_t>(box.element);
  for (std::size_t axis = strides.size(); axis-- > 0;
       stride *= static_cast<std::int64_t>(box.shape[axis]))
    strides[axis] = stride;
  return strides;
}

}  // namespace

std::uint64_t checksum(const std::byte* first, const Box& box) {
  if (box.shape.empty()) return sum_of({first, 1, 0, 0}, box.element);
  if (is_empty(box)) return 0;
  std::vector<std::uint64_t> index(box.shape.size() - 1);
  std::uint64_t sum = 0;
  do sum += sum_of(row_at(first, box, index), box.element);
  while (step(index, box));
  return sum;
}

void add_chunk_checksums(const std::byte* first, const Box& box, const Grid& grid,
                         std::uint64_t first_chunk, std::span<std::uint64_t> sums) {
  if (box.shape.empty()) {
    sums[0] += checksum(first, box);
    return;
  }
  if (is_empty(box)) return;
  const std::size_t last = box.shape.size() - 1;
  const std::uint64_t at = box.begin[last] - grid.begin[last];
  std::vector<std::uint64_t> index(last);
  do {
    const std::uint64_t chunk =
        chunk_before_last_axis(box, grid, index) + at / grid.chunk[last] - first_chunk;
    add_row(row_at(first, box, index), box.element, at % grid.chunk[last], grid.chunk[last],
            sums.subspan(chunk));
  } while (step(index, box));
}

std::vector<std::uint64_t> checksums(std::span<const std::byte> data,
                                     std::span<const std::uint64_t> boxes) {
  const auto take = [&boxes](std::size_t count) {
    const auto taken = boxes.first(count);
    boxes = boxes.subspan(count);
    return taken;
  };
  std::vector<std::uint64_t> sums;
  while (!boxes.empty()) {
    const auto element = take(1)[0], axes = take(1)[0];
    const Box box{.element = element,
                  .whole = take(axes),
                  .begin = take(axes),
                  .shape = take(axes),
                  .strides = {}};
    const std::vector<std::int64_t> strides = strides_in_order(box);
    const std::size_t bytes =
        std::accumulate(box.shape.begin(), box.shape.end(), box.element, std::multiplies<>());
    sums.push_back(checksum(data.data(), {box.element, box.whole, box.begin, box.shape, strides}));
    data = data.subspan(bytes);
  }
  return sums;
}

}  // namespace pario::checkpoint
