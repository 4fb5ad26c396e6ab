// A naive model of layouts as lists of bytes; and random layouts, each built as a TypeMap and as a
// model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/pattern/pattern.hpp"

namespace pario::pattern {

struct Model {
  std::vector<std::int64_t> bytes;  ///< displacement of each, in type map order
  bool bounded = false;  ///< has bounds (an empty layout without bounds does not extend others)
  std::int64_t lower = 0, extent = 0;

  std::int64_t at(std::uint64_t position) const {
    return bytes[position % bytes.size()] +
           static_cast<std::int64_t>(position / bytes.size()) * extent;
  }
  void put(const Model& other, std::int64_t displacement) {
    for (const std::int64_t byte : other.bytes) bytes.push_back(byte + displacement);
    if (!other.bounded) return;
    const std::int64_t from = other.lower + displacement, to = from + other.extent;
    const std::int64_t low = bounded ? std::min(lower, from) : from,
                       high = bounded ? std::max(lower + extent, to) : to;
    lower = low;
    extent = high - low;
    bounded = true;
  }
};

/// Joined runs of the bytes [begin, end) of the model, tiled.
inline std::vector<std::pair<std::int64_t, std::uint64_t>> model_runs(const Model& model,
                                                                      std::uint64_t begin,
                                                                      std::uint64_t end) {
  std::vector<std::pair<std::int64_t, std::uint64_t>> runs;
  for (std::uint64_t i = begin; i < end; ++i) {
    const std::int64_t at = model.at(i);
    if (!runs.empty() && runs.back().first + static_cast<std::int64_t>(runs.back().second) == at) {
      ++runs.back().second;
    } else {
      runs.emplace_back(at, 1);
    }
  }
  return runs;
}

struct Sample {
  TypeMap layout;
  Model model;
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  std::uint64_t upto(std::uint64_t high) {
    return static_cast<std::uint64_t>(between(0, static_cast<std::int64_t>(high)));
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }

  /// Makes any layout: negative strides, overlaps, empty parts, odd bounds.
  Sample any(int depth) { return layout(depth, false); }
  /// Makes a valid file type: ascending, without overlapping tiles, lower bound at least 0. `unit`
  /// divides all its numbers.
  Sample ascending(int depth, std::int64_t unit) {
    Sample sample = layout(depth, true, unit);
    const std::int64_t end = sample.model.bytes.empty() ? 0 : sample.model.bytes.back() + 1;
    const std::int64_t lower = sample.model.bytes.empty() ? 0 : sample.model.bytes.front();
    return with_bounds(sample, 0,
                       std::max<std::int64_t>(end - (one_in(2) ? lower : 0), 0) +
                           (one_in(2) ? 0 : unit * between(0, 20)));
  }

 private:
  static Sample with_bounds(Sample sample, std::int64_t lower, std::int64_t extent) {
    sample.layout = sample.layout.with_extent(lower, extent);
    sample.model.lower = lower;
    sample.model.extent = extent;
    sample.model.bounded = sample.layout.size() > 0 || lower != 0 || extent != 0;
    return sample;
  }

  Sample layout(int depth, bool ascending, std::int64_t unit = 1) {
    const std::int64_t kind = depth == 0 ? 0 : between(0, 4);
    if (kind == 0) return block(unit);
    if (kind == 1) return repeat(depth, ascending, unit);
    if (kind == 2) return sequence(depth, ascending, unit);
    if (kind == 3) return make_indexed(depth, ascending, unit);
    if (ascending) return layout(depth - 1, ascending, unit);
    return with_bounds(layout(depth - 1, ascending), between(-20, 20), between(-5, 80));
  }

  Sample block(std::int64_t unit) {
    const std::uint64_t size = one_in(8) ? 0 : static_cast<std::uint64_t>(unit * between(1, 9));
    Sample sample{TypeMap::block(size), {}};
    for (std::uint64_t i = 0; i < size; ++i)
      sample.model.bytes.push_back(static_cast<std::int64_t>(i));
    sample.model.extent = static_cast<std::int64_t>(size);
    sample.model.bounded = size > 0;
    return sample;
  }

  /// Returns the length from the first byte to the end of the last one.
  static std::int64_t span(const Model& model) {
    return model.bytes.empty() ? 0 : model.bytes.back() + 1 - model.bytes.front();
  }
  std::int64_t gap(std::int64_t unit) { return one_in(3) ? 0 : unit * between(0, 12); }

  Sample repeat(int depth, bool ascending, std::int64_t unit) {
    const Sample one = layout(depth - 1, ascending, unit);
    const std::uint64_t count = upto(6);
    const std::int64_t stride = ascending   ? span(one.model) + gap(unit)
                                : one_in(3) ? one.model.extent
                                            : between(-40, 60);
    Sample all{TypeMap::repeat(one.layout, count, stride), {}};
    for (std::uint64_t i = 0; i < count; ++i)
      all.model.put(one.model, static_cast<std::int64_t>(i) * stride);
    return all;
  }

  Sample sequence(int depth, bool ascending, std::int64_t unit) {
    std::vector<std::pair<std::int64_t, TypeMap>> parts;
    Sample all;
    std::int64_t end = unit * between(0, 5);
    for (std::uint64_t count = upto(5); count > 0; --count) {
      const Sample one = layout(depth - 1, ascending, unit);
      const std::int64_t first = one.model.bytes.empty() ? 0 : one.model.bytes.front();
      const std::int64_t at = ascending ? end - first + gap(unit) : between(-60, 100);
      if (!one.model.bytes.empty()) end = at + one.model.bytes.back() + 1;
      parts.emplace_back(at, one.layout);
      all.model.put(one.model, at);
    }
    all.layout = TypeMap::sequence(parts);
    return all;
  }

  Sample make_indexed(int depth, bool ascending, std::int64_t unit) {
    Sample one = layout(ascending ? 0 : depth - 1, ascending, unit);
    const bool equal = one_in(2);
    std::vector<std::int64_t> displacements;
    std::vector<std::uint64_t> counts;
    Sample all;
    std::int64_t end = unit * between(0, 5);
    for (std::uint64_t parts = 1 + upto(7); parts > 0; --parts) {
      const std::uint64_t count = equal && !counts.empty() ? counts.back() : upto(3);
      const std::int64_t at = ascending ? end + gap(unit) : between(-60, 100);
      displacements.push_back(at);
      counts.push_back(count);
      for (std::uint64_t i = 0; i < count; ++i)
        all.model.put(one.model, at + static_cast<std::int64_t>(i) * one.model.extent);
      end = at + static_cast<std::int64_t>(count) * one.model.extent;
    }
    if (equal && one_in(2)) counts.resize(1);
    all.layout = TypeMap::make_indexed(one.layout, displacements, counts);
    return all;
  }

  std::mt19937_64 engine_;
};

/// Returns PARIO_TEST_SEED, which repeats a run, or a random seed; prints it.
inline std::uint64_t first_seed() {
  const char* text = std::getenv("PARIO_TEST_SEED");
  const std::uint64_t seed =
      text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
  std::cout << "PARIO_TEST_SEED=" << seed << "\n";
  return seed;
}

/// Returns the number of cases, each with the next seed: PARIO_TEST_CASES, or the usual number;
/// five times as many in `make test-all`, which sets PARIO_TEST_RANDOM.
inline std::uint64_t cases(std::uint64_t usual) {
  const char* text = std::getenv("PARIO_TEST_CASES");
  if (text != nullptr) return std::strtoull(text, nullptr, 10);
  return std::getenv("PARIO_TEST_RANDOM") != nullptr ? 5 * usual : usual;
}

}  // namespace pario::pattern
