#include "core/layout/policy.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace pario::layout {
namespace {

constexpr std::uint64_t MiB = 1 << 20, GiB = 1 << 30, GB = 1'000'000'000;

constexpr StripeRule kRules[] = {
#define PARIO_STRIPES(name, from, to, writers, least, most, per_target, unit, reason) \
  {#name, {from, to}, writers, least, most, per_target, unit, reason},
#include "core/layout/policy.def"
#undef PARIO_STRIPES
};

bool fits(const StripeRule& rule, const Expected& expected) {
  return rule.sizes.contains(std::min(expected.size, kToTheEnd - 1)) &&
         (rule.writers == 0 || expected.writers <= rule.writers);
}

std::uint64_t stripes(const StripeRule& rule, const Expected& expected) {
  std::uint64_t count = rule.most;
  if (rule.writers != 1)
    count = std::min<std::uint64_t>(count, std::max(expected.ranks, expected.writers));
  if (rule.per_target != 0) count = std::min(count, expected.size / rule.per_target);
  const std::uint64_t targets = expected.targets != 0 ? expected.targets : rule.most;
  count = std::min(count, targets / std::max(expected.files, 1U));
  return std::min(std::max<std::uint64_t>(count, rule.least), targets);
}

const StripeRule& rule_of(const Expected& expected) {
  const auto* rule =
      std::ranges::find_if(kRules, [&](const StripeRule& row) { return fits(row, expected); });
  return rule != std::end(kRules) ? *rule : kRules[0];
}

Striping striping(const StripeRule& rule, const Expected& expected) {
  return {rule.unit, static_cast<std::uint32_t>(stripes(rule, expected)), -1};
}

/// Appends a part, or extends the last one if the stripes are equal.
void add(StripedParts& out, const Striping& striping, std::uint64_t end) {
  const std::uint64_t begin = out.count == 0 ? 0 : out.ranges[out.count - 1].range.end;
  if (out.count == 0 || out.ranges[out.count - 1].striping != striping) {
    out.ranges[out.count].striping = striping;
    out.ranges[out.count++].range.begin = begin;
  }
  out.ranges[out.count - 1].range.end = end;
}

}  // namespace

std::span<const StripeRule> stripe_rules() { return kRules; }

StripeChoice choose_stripes(const Expected& expected) {
  const StripeRule& found = rule_of(expected);
  return {striping(found, expected), &found};
}

double compare_with(const MeasuredStripes& measured, const Expected& expected) {
  constexpr double kSimilar = 4, kRounding = 1e-9,
                   kNothing = std::numeric_limits<double>::infinity();
  if ((measured.writers > 1) != (expected.writers > 1) || measured.size == 0 || expected.size == 0)
    return kNothing;
  const auto factor = [](auto one, auto other) {
    return std::abs(std::log(static_cast<double>(one) / static_cast<double>(other)));
  };
  const double sizes = factor(measured.size, expected.size),
               writers = factor(measured.writers, std::max(expected.writers, 1U));
  return std::max(sizes, writers) > std::log(kSimilar) + kRounding ? kNothing : sizes + writers;
}

StripedParts growing_stripes(Expected expected) {
  StripedParts out;
  for (std::uint64_t end = 0; end != kToTheEnd && out.count < out.ranges.size();) {
    expected.size = end;
    const StripeRule& rule = rule_of(expected);
    expected.size = end = rule.sizes.end;
    add(out, striping(rule, expected), end == kToTheEnd ? end : base::round_up(end, rule.unit));
  }
  return out;
}

}  // namespace pario::layout
