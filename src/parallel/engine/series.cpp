#include "parallel/engine/series.hpp"

#include <algorithm>

namespace pario::engine {
namespace {

constexpr std::uint64_t kMostDoublings = 8;
static_assert((1 << kMostDoublings) - 1 == Series::kMost);

}  // namespace

Series::Shape Series::shape_of(const pattern::Summary& summary) {
  if (summary.bytes == 0) return Shape::nothing;
  const bool is_run = summary.pieces <= 1 && summary.bytes == summary.span.length();
  return is_run ? Shape::run : Shape::other;
}

/// The first meetings of a direction begin no series, each later one a series twice as long as the
/// one before, until a call needs an exchange.
void Series::begin(plan::Direction direction, std::span<const pattern::Summary> ranks,
                   const pattern::Summary& mine, bool direct) {
  const bool suits = direct && std::ranges::none_of(ranks, [](const pattern::Summary& rank) {
                       return shape_of(rank) == Shape::other;
                     });
  auto& [streak, usual] = learned_[index_of(direction)];
  streak = suits ? streak + 1 : 0;
  usual = shape_of(mine);
  direction_ = direction;
  const std::uint64_t doublings =
      std::min(streak - std::min(streak, kFirstMeetings), kMostDoublings);
  left_ = (std::uint64_t{1} << doublings) - 1;
}

}  // namespace pario::engine
