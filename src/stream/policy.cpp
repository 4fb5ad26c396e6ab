#include <algorithm>

#include "stream/stream.hpp"

namespace pario::stream {
namespace {

constexpr std::uint64_t MiB = 1 << 20;

struct Row {
  layout::Kind kind;
  std::uint64_t size, count, readers, writeback;
};
constexpr Row kRows[] = {
#define PARIO_STREAM_POLICY(kind, size, count, readers, writeback) {layout::Kind::kind, size, count, readers, writeback},
#include "stream/policy.def"
#undef PARIO_STREAM_POLICY
};

constexpr std::uint64_t kNever = ~0ull;

const Row& row_of(layout::Kind kind) {
  const auto* found = std::ranges::find(kRows, kind, &Row::kind);
  return found == std::end(kRows) ? kRows[0] : *found;
}

void fill_in(std::uint64_t& value, std::uint64_t policy) {
  if (value == 0) value = policy;
}

}  // namespace

void fill_in(hints::StreamHints& hints, layout::Kind kind) {
  const Row& row = row_of(kind);
  fill_in(hints.size, row.size);
  fill_in(hints.count, row.count);
  fill_in(hints.readers, row.readers);
  fill_in(hints.writeback, row.writeback == 0 ? kNever : row.writeback);
  if (hints.prefetch != 0) hints.prefetch = std::max(hints.prefetch, hints.readers);
}

}  // namespace pario::stream
