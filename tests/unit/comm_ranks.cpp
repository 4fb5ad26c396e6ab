// Module comm on a real MPI: mpiexec -n 4 comm_ranks /path/to/libmpi.so. Like pario, it is built
// without an MPI.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "comm_conformance.hpp"
#include "core/mpi/mpi.hpp"

namespace pario::comm {
namespace {

using mpi::Library;
using mpi::Word;

std::shared_ptr<Comm> world() {
  auto made = make_mpi(Library::get()->comm_world);
  EXPECT_TRUE(made.ok()) << made.error().text();
  return made.ok() ? *made : nullptr;
}

/// Returns a communicator of the ranks with the same `group`, in the order of `key`.
Word split(int group, int key) {
  const auto function =
      reinterpret_cast<int (*)(Word, int, int, Word*)>(mpi::find("PMPI_Comm_split"));
  Word part = 0;
  EXPECT_EQ(function(Library::get()->comm_world, group, key, &part), 0);
  return part;
}

int count_pretended_nodes() {
  const char* text = std::getenv("PARIO_NODES");
  return text ? std::atoi(text) : 1;
}

class Ranks : public testing::TestWithParam<conformance::Case> {};

INSTANTIATE_TEST_SUITE_P(World, Ranks, testing::ValuesIn(conformance::kCases),
                         [](const auto& test) { return test.param.name; });

TEST_P(Ranks, AllOfThemDo) { GetParam().run(*world()); }

TEST_P(Ranks, HalfOfThemBackwardsDo) {
  const auto comm = world();
  Word half = split(comm->rank() % 2, -comm->rank());
  auto made = make_mpi(half);
  ASSERT_TRUE(made.ok());
  for (int rank = 0; rank < (*made)->size(); ++rank)
    EXPECT_EQ((*made)->world_rank(rank),
              comm->size() - 1 - rank * 2 - (comm->size() - 1 - comm->rank()) % 2);
  GetParam().run(**made);
  Library::get()->comm_free(&half);
}

TEST(RanksTogether, PretendNodesAreBlocksOfRanks) {
  const auto comm = world();
  EXPECT_EQ(comm->topology().nodes(), std::min(count_pretended_nodes(), comm->size()));
  EXPECT_TRUE(std::is_sorted(comm->topology().node_of.begin(), comm->topology().node_of.end()));
}

TEST(RanksTogether, CommsOfTheSameRanksDoNotMeet) {
  const auto comm = world(), again = world();
  if (comm->size() == 1) return;
  EXPECT_NE(comm, again);
  conformance::MessagesOfTwoDoNotMeet(*comm, *again);
}

TEST(RanksTogether, AFailureIsThatOfOneComm) {
  const auto comm = world(), again = world();
  if (comm->size() == 1) return;
  if (comm->rank() == 0) comm->fail({.number = ENOMEM, .operation = "share"});
  EXPECT_EQ(comm->barrier().error().number, ENOMEM);
  EXPECT_TRUE(again->barrier().ok());
  EXPECT_TRUE(world()->barrier().ok());
}

TEST(RanksTogether, OneRankAloneNeedsNoMpi) {
  const auto comm = world();
  auto self = make_mpi(Library::get()->comm_self);
  ASSERT_TRUE(self.ok());
  EXPECT_EQ((*self)->size(), 1);
  EXPECT_EQ((*self)->world_rank(0), comm->rank());
}

TEST(RanksTogether, AnIntercommunicatorIsRefused) {
  const auto comm = world();
  if (comm->size() < 2) return;
  const auto function = reinterpret_cast<int (*)(Word, int, Word, int, int, Word*)>(
      mpi::find("PMPI_Intercomm_create"));
  const int mine = comm->rank() % 2;
  Word half = split(mine, comm->rank()), inter = 0;
  ASSERT_EQ(function(half, 0, Library::get()->comm_world, 1 - mine, 5, &inter), 0);
  const auto made = make_mpi(inter);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().number, EINVAL);
  Library::get()->comm_free(&inter);
  Library::get()->comm_free(&half);
}

TEST(RanksTogether, ManyCommsAndDuplicatesComeAndGo) {
  const auto comm = world();
  for (int turn = 0; turn < 30; ++turn) {
    Word part = split(0, (comm->rank() + turn) % comm->size());
    auto made = make_mpi(part);
    ASSERT_TRUE(made.ok());
    const auto copy = (*made)->duplicate();
    ASSERT_TRUE(copy);
    ASSERT_TRUE(copy->barrier().ok());
    Library::get()->comm_free(&part);
  }
}

TEST(RanksTogether, AMessageThatNeverComesEndsWithTheErrorOfTheLook) {
  const auto comm = world()->duplicate();
  std::byte in{0};
  const Patience short_patience{.interval_ns = 1'000'000,
                                .look = [](std::uint64_t) -> base::Status {
                                  return base::Error{.number = ETIMEDOUT, .operation = "look"};
                                }};
  std::unique_ptr<Pending> message[] = {
      comm->receive((comm->rank() + 1) % comm->size(), 3, {&in, 1})};
  EXPECT_FALSE(wait_all(message, short_patience).ok());
}

/// Calls a function of the loaded MPI.
template <class... Args>
int call(const char* name, Args... args) {
  return reinterpret_cast<int (*)(Args...)>(mpi::find(name))(args...);
}

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc < 2 || !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) {
    std::fprintf(stderr, "usage: comm_ranks LIBMPI: %s\n", argc < 2 ? "no library" : dlerror());
    return 2;
  }
  call("PMPI_Init", static_cast<int*>(nullptr), static_cast<char***>(nullptr));
  const int result = RUN_ALL_TESTS();
  call("PMPI_Finalize");
  return result;
}

}  // namespace
}  // namespace pario::comm

int main(int argc, char** argv) { return pario::comm::run(argc, argv); }
