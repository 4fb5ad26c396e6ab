// Which counters a call moves: pure functions on a row.
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/trace.hpp"

namespace pario::trace {

/// Counts a call in its row. `nested`: it was made inside an MPI-IO call.
void apply(Record& row, const Call& call, bool nested);

/// Whether among the `calls` writes that `row` counted last is one to be looked at: the first, second, fourth, ... and every 4096th.
inline bool is_sampled(const Record& row, std::uint64_t calls) { return (row.writes & (row.writes - 1)) == 0 || row.writes % 4096 < calls; }

inline constexpr std::size_t kSampleSize = 256;
/// What the first bytes of a write look like.
struct Sample {
  std::uint64_t bytes, lines;
  bool text, numbers;
};
Sample look_at(std::string_view data);
void apply(Record& row, const Sample& sample);

}  // namespace pario::trace
