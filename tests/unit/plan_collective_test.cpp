#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "parallel/plan/plan.hpp"

namespace pario::plan {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

pattern::Summary one_run(std::uint64_t begin, std::uint64_t length) {
  std::uint64_t granule = pattern::kMaxGranule;
  while ((begin | (begin + length)) % granule != 0) granule /= 2;
  return {base::Extent::at(begin, length), length, length > 0 ? 1u : 0u, length > 0 ? granule : 0,
          1};
}

struct Ranks {
  std::vector<pattern::Summary> summaries;
  std::vector<int> nodes;

  Situation write_to(const layout::StripeLayout& layout) const {
    return {Direction::write, summaries, nodes, layout};
  }
};

/// Rank r writes `length` bytes at r * length.
Ranks neighbours(int ranks, int on_a_node, std::uint64_t length) {
  Ranks all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.summaries.push_back(one_run(static_cast<std::uint64_t>(rank) * length, length));
    all.nodes.push_back(rank / on_a_node);
  }
  return all;
}

TEST(Collective, FortyEightRanksOfAMillionBytesAreAWindowPerStripeOrBlock) {
  const Ranks ranks = neighbours(48, 16, 1'000'000);
  EXPECT_EQ(make_plan(ranks.write_to({layout::Kind::lustre, kMiB, 8}), hints::default_file_hints())
                .windows(),
            46u);
  EXPECT_EQ(
      make_plan(ranks.write_to({layout::Kind::gpfs, 16 * kMiB, 1}), hints::default_file_hints())
          .windows(),
      3u);
}

TEST(Collective, WindowsOfAStripeTargetAlwaysBelongToTheSameNode) {
  const Ranks ranks = neighbours(48, 12, 1'000'000);
  const Plan plan =
      make_plan(ranks.write_to({layout::Kind::lustre, kMiB, 3}), hints::default_file_hints());
  std::set<std::pair<std::uint64_t, int>> pairs;
  for (std::uint64_t w = plan.first_window(); w < plan.first_window() + plan.windows(); ++w)
    pairs.insert({w % 3, plan.owner(w)});
  EXPECT_EQ(pairs.size(), 3u);
}

TEST(Collective, MergingPaysForSmallCallsAndForUnfilledWindowsOfServers) {
  const auto pays = [](int on_a_node, std::uint64_t length, layout::Kind kind) {
    const Ranks ranks = neighbours(48, on_a_node, length);
    return merging_pays(ranks.write_to({kind, kMiB, 8}), hints::default_file_hints());
  };
  EXPECT_TRUE(pays(48, 8 << 10, layout::Kind::local));
  EXPECT_FALSE(pays(48, 10'000, layout::Kind::local));
  EXPECT_TRUE(pays(16, 10'000, layout::Kind::lustre)) << "three windows are partly filled";
  EXPECT_FALSE(pays(16, 1'000'000, layout::Kind::lustre));
}

/// A cheap generator with the same numbers everywhere.
struct Random {
  std::uint64_t state;
  std::uint64_t below(std::uint64_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
  }
};

/// Checks the properties of every plan.
void expect_sound(const Plan& plan, std::uint64_t memory, std::uint64_t node_ranks) {
  ASSERT_EQ(plan.window % plan.granule, 0u) << plan.text();
  const std::uint64_t slot = plan.window + node_ranks * (plan.window / plan.granule / 8);
  EXPECT_TRUE(plan.slots * slot <= memory + memory / 8 || plan.window == pattern::kMaxGranule)
      << plan.text();
  int last = -1;
  for (std::uint64_t w = plan.first_window(); w < plan.first_window() + plan.windows(); ++w) {
    const int owner = plan.owner(w);
    ASSERT_NE(std::ranges::find(plan.aggregators, owner), plan.aggregators.end()) << plan.text();
    EXPECT_TRUE(plan.cyclic || owner >= last) << plan.text();
    last = owner;
  }
}

TEST(Collective, PlansAreSoundForAnyAccessesAndHints) {
  constexpr layout::Kind kKinds[] = {layout::Kind::local, layout::Kind::lustre, layout::Kind::gpfs,
                                     layout::Kind::nfs, layout::Kind::unknown};
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random{seed};
    Ranks ranks;
    const std::uint64_t count = 1 + random.below(20), on_a_node = 1 + random.below(count);
    for (std::uint64_t rank = 0; rank < count; ++rank) {
      ranks.summaries.push_back(
          one_run(random.below(40 * kMiB), random.below(random.below(2) ? 100 : 100'000)));
      ranks.nodes.push_back(static_cast<int>(rank / on_a_node) * 3);
    }
    hints::FileHints hints = hints::default_file_hints();
    hints.romio_cb_write = hints::Choice::enable;
    hints.cb_buffer_size = 4096 + random.below(8 * kMiB);
    hints.pario_memory = kMiB << random.below(9);
    hints.cb_nodes = random.below(4);
    const layout::StripeLayout layout{kKinds[random.below(5)], 1 + random.below(4 * kMiB),
                                      1 + static_cast<std::uint32_t>(random.below(5))};
    const Plan plan = make_plan(ranks.write_to(layout), hints);
    if (plan.way == Way::windows) expect_sound(plan, hints.pario_memory, on_a_node);
  }
}

}  // namespace
}  // namespace pario::plan
