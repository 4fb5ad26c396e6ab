// The costs of a call: requests of the file, messages, bytes in messages.
#include <numeric>

#include "exchange_world.hpp"

namespace pario::exchange {
namespace {

constexpr std::uint64_t kPiece = 64, kPieces = 96, kWindow = 1024;

/// Rank r of n has every n-th piece.
pattern::Access make_interleaved(int rank, int ranks, std::byte* buffer) {
  const auto stride = static_cast<std::int64_t>(kPiece * static_cast<std::uint64_t>(ranks));
  const pattern::FileView view{kPiece * static_cast<std::uint64_t>(rank), 1,
                               pattern::TypeMap::block(kPiece).with_extent(0, stride)};
  return {buffer, pattern::TypeMap::block(1), view, 0, kPiece * kPieces};
}

plan::Plan plan_for(plan::Direction direction, int ranks, int nodes) {
  plan::Plan plan;
  plan.way = plan::Way::windows;
  plan.direction = direction;
  plan.span = {0, kPiece * kPieces * static_cast<std::uint64_t>(ranks)};
  plan.window = kWindow;
  plan.slots = 4;
  plan.aggregators.resize(static_cast<std::size_t>(nodes));
  std::iota(plan.aggregators.begin(), plan.aggregators.end(), 0);
  plan.granule = kPiece;
  plan.holes = plan::Holes::choose;
  plan.whole = true;
  return plan;
}

Counters add(Counters sum, const Counters& other) { return sum += other; }

/// Sixteen ranks; the nodes take turns.
Counters run_sixteen(plan::Direction direction, int nodes, MemoryFile& sink) {
  constexpr int ranks = 16;
  std::vector<int> node_of;
  for (int rank = 0; rank < ranks; ++rank) node_of.push_back(rank % nodes);
  const plan::Plan plan = plan_for(direction, ranks, nodes);
  std::vector<Counters> tallies(ranks);
  comm::run_as_threads(node_of, [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    std::vector<std::byte> memory(kPiece * kPieces, std::byte{1});
    const pattern::Access access = make_interleaved(comm->rank(), ranks, memory.data());
    EXPECT_TRUE(
        call(exchange, 1, plan, access, sink, tallies[static_cast<std::size_t>(comm->rank())])
            .ok());
  });
  return std::accumulate(tallies.begin(), tallies.end(), Counters{}, add);
}

constexpr std::uint64_t kBytes = kPiece * kPieces * 16;

class ExchangeCounts : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Nodes, ExchangeCounts, testing::Values(1, 2, 4, 8));

TEST_P(ExchangeCounts, EveryWindowIsOneWrite) {
  MemoryFile sink;
  const Counters counters = run_sixteen(plan::Direction::write, GetParam(), sink);
  EXPECT_EQ(sink.writes, plan_for(plan::Direction::write, 16, GetParam()).windows());
  EXPECT_EQ(sink.reads, 0u);
  EXPECT_EQ(counters.system_writes, sink.writes);
  EXPECT_EQ(counters.system_write_bytes, kBytes);
  EXPECT_EQ(counters.gap_bytes, 0u);
}

TEST_P(ExchangeCounts, ANodeSendsOneMessageForEachWindowOfAnother) {
  MemoryFile sink;
  const std::uint64_t nodes = GetParam(), windows = kBytes / kWindow;
  const Counters counters = run_sixteen(plan::Direction::write, GetParam(), sink);
  EXPECT_EQ(counters.messages, windows * (nodes - 1));
  const std::uint64_t others =
      kBytes / nodes * (nodes - 1);  // bytes written by another node than that of their rank
  EXPECT_GE(counters.message_bytes, others);
  EXPECT_LE(counters.message_bytes, others + counters.messages * 64);
}

TEST_P(ExchangeCounts, EveryByteIsReadOnceAndSentOnceToTheNodeThatNeedsIt) {
  MemoryFile sink;
  for (std::uint64_t at = 0; at < kBytes; ++at) sink.bytes[at] = std::byte{7};
  const std::uint64_t nodes = GetParam(), windows = kBytes / kWindow;
  const Counters counters = run_sixteen(plan::Direction::read, GetParam(), sink);
  EXPECT_EQ(sink.reads, windows);
  EXPECT_EQ(sink.read_bytes, kBytes);
  EXPECT_EQ(counters.messages, 2 * windows * (nodes - 1));  // a request and a reply
  EXPECT_LE(counters.message_bytes, kBytes / nodes * (nodes - 1) + counters.messages * 64);
}

/// One of two ranks writes alone: half of the file is holes.
Counters write_alone(const plan::Plan& plan, MemoryFile& sink) {
  Counters counters;
  const int node_of[] = {0};
  comm::run_as_threads(node_of, [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    std::vector<std::byte> memory(kPiece * kPieces, std::byte{1});
    EXPECT_TRUE(
        call(exchange, 1, plan, make_interleaved(0, 2, memory.data()), sink, counters).ok());
  });
  return counters;
}

TEST(ExchangeHoles, AreNeitherReadNorWrittenWhenRunsAre) {
  MemoryFile sink;
  plan::Plan plan = plan_for(plan::Direction::write, 2, 1);
  plan.holes = plan::Holes::runs;
  const Counters counters = write_alone(plan, sink);
  EXPECT_EQ(counters.system_writes, kPieces);
  EXPECT_EQ(counters.read_modify_writes, 0u);
  EXPECT_EQ(sink.reads, 0u);
  EXPECT_EQ(sink.bytes.size(), kPiece * kPieces);
}

TEST(ExchangeHoles, AreReadOnceForEachWindowThatIsModified) {
  MemoryFile sink;
  plan::Plan plan = plan_for(plan::Direction::write, 2, 1);
  plan.holes = plan::Holes::modify;
  const Counters counters = write_alone(plan, sink);
  EXPECT_EQ(counters.read_modify_writes, plan.windows());
  EXPECT_EQ(counters.system_writes, plan.windows());
  EXPECT_EQ(sink.reads, plan.windows());
  EXPECT_EQ(sink.size(), plan.span.end - kPiece)
      << "the file ends with the last byte that was written";
}

}  // namespace
}  // namespace pario::exchange
