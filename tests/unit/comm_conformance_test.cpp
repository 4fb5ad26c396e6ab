// One rank alone, and threads as ranks on one, two, three and four nodes, do what every member of room comm does.
#include "comm_conformance.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <tuple>

namespace pario::comm {
namespace {

struct Member {
  std::string name;
  std::vector<int> node_of;  // empty: self
};

void PrintTo(const Member& member, std::ostream* out) { *out << member.name; }

using Conformance = testing::TestWithParam<std::tuple<conformance::Case, Member>>;

const Member kMembers[] = {{"self", {}},
                           {"one_node", {0, 0, 0}},
                           {"two_nodes", {0, 0, 1, 1, 1}},
                           {"two_nodes_in_turns", {7, 3, 7, 3}},
                           {"three_nodes", {0, 1, 2, 0, 1, 2, 2}},
                           {"four_nodes", {0, 1, 2, 3}}};

INSTANTIATE_TEST_SUITE_P(Members, Conformance, testing::Combine(testing::ValuesIn(conformance::kCases), testing::ValuesIn(kMembers)),
                         [](const auto& test) { return std::get<0>(test.param).name + ("_" + std::get<1>(test.param).name); });

TEST_P(Conformance, Holds) {
  const auto& [test, member] = GetParam();
  if (member.node_of.empty()) return test.run(*make_self());
  run_as_threads(member.node_of, [&run = test.run](const std::shared_ptr<Comm>& comm) { run(*comm); });
}

}  // namespace
}  // namespace pario::comm
