#include <algorithm>

#include "layers/buffers/buffers.hpp"
#include "layers/buffers/system_calls.hpp"

namespace pario::buffers {
namespace {

constexpr std::uint64_t MiB = 1 << 20;
constexpr std::uint64_t kNever = ~0ull;

struct PolicyRow {
  layout::Kind kind;
  std::uint64_t size, count, readers, writeback;
};
constexpr PolicyRow kPolicyRows[] = {
#define PARIO_STREAM_POLICY(kind, size, count, readers, writeback) \
  {layout::Kind::kind, size, count, readers, writeback},
#include "layers/buffers/policy.def"
#undef PARIO_STREAM_POLICY
};

const PolicyRow& find_row(layout::Kind kind) {
  const auto* found = std::ranges::find(kPolicyRows, kind, &PolicyRow::kind);
  return found == std::end(kPolicyRows) ? kPolicyRows[0] : *found;
}

void fill_unset(std::uint64_t& value, std::uint64_t policy) {
  if (value == 0) value = policy;
}

}  // namespace

layout::Kind file_system_of(int descriptor) { return system_calls.file_system(descriptor); }

void fill_unset_hints(hints::StreamHints& hints, layout::Kind kind) {
  const PolicyRow& row = find_row(kind);
  fill_unset(hints.size, row.size);
  fill_unset(hints.count, row.count);
  fill_unset(hints.readers, row.readers);
  fill_unset(hints.writeback, row.writeback == 0 ? kNever : row.writeback);
  if (hints.prefetch != 0) hints.prefetch = std::max(hints.prefetch, hints.readers);
}

}  // namespace pario::buffers
