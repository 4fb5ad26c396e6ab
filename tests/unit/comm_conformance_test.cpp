// The conformance suite of comm for the members self, threads and callback, the last two on one to
// four nodes.
#include "comm_conformance.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <tuple>

#include "comm_mailbox.hpp"

namespace pario::comm {
namespace {

struct Member {
  std::string name;
  std::vector<int> node_of;  // empty: self
  bool callback = false;
};

void PrintTo(const Member& member, std::ostream* out) { *out << member.name; }

using Conformance = testing::TestWithParam<std::tuple<conformance::Case, Member>>;

const Member kMembers[] = {{"self", {}},
                           {"one_node", {0, 0, 0}},
                           {"two_nodes", {0, 0, 1, 1, 1}},
                           {"two_nodes_in_turns", {7, 3, 7, 3}},
                           {"three_nodes", {0, 1, 2, 0, 1, 2, 2}},
                           {"four_nodes", {0, 1, 2, 3}},
                           {"callback_on_one_node", {0, 0, 0}, true},
                           {"callback_on_two_nodes", {0, 0, 1, 1, 1}, true},
                           {"callback_on_three_nodes", {0, 1, 2, 0, 1, 2, 2}, true},
                           {"callback_on_four_nodes", {0, 1, 2, 3}, true}};

INSTANTIATE_TEST_SUITE_P(Members, Conformance,
                         testing::Combine(testing::ValuesIn(conformance::kCases),
                                          testing::ValuesIn(kMembers)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name +
                                  ("_" + std::get<1>(test.param).name);
                         });

TEST_P(Conformance, Holds) {
  const auto& [test, member] = GetParam();
  if (member.node_of.empty()) return test.run(*make_self());
  if (member.callback)
    return run_with_mailboxes(member.node_of,
                              [&run = test.run](const auto&, const auto& comm) { run(*comm); });
  run_as_threads(member.node_of,
                 [&run = test.run](const std::shared_ptr<Comm>& comm) { run(*comm); });
}

}  // namespace
}  // namespace pario::comm
