// What a call costs, counted: requests of the file, messages, bytes in messages.
#include <numeric>

#include "exchange_world.hpp"

namespace pario::exchange {
namespace {

constexpr std::uint64_t kPiece = 64, kPieces = 96, kWindow = 1024;

/// Rank r of n has every n-th piece.
pattern::Access interleaved(int rank, int ranks, std::byte* buffer) {
  const auto stride = static_cast<std::int64_t>(kPiece * static_cast<std::uint64_t>(ranks));
  const pattern::FileView view{kPiece * static_cast<std::uint64_t>(rank), 1, pattern::Layout::block(kPiece).resized(0, stride)};
  return {buffer, pattern::Layout::block(1), view, 0, kPiece * kPieces};
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

Tally add(Tally sum, const Tally& other) {
  sum.messages += other.messages;
  sum.message_bytes += other.message_bytes;
  sum.file_writes += other.file_writes;
  sum.file_write_bytes += other.file_write_bytes;
  sum.file_reads += other.file_reads;
  sum.file_read_bytes += other.file_read_bytes;
  sum.hole_bytes += other.hole_bytes;
  return sum;
}

/// Sixteen ranks, distributed over the nodes in turn.
Tally run_sixteen(plan::Direction direction, int nodes, MemorySink& sink) {
  constexpr int ranks = 16;
  std::vector<int> node_of;
  for (int rank = 0; rank < ranks; ++rank) node_of.push_back(rank % nodes);
  const plan::Plan plan = plan_for(direction, ranks, nodes);
  std::vector<Tally> tallies(ranks);
  comm::run_as_threads(node_of, [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    std::vector<std::byte> memory(kPiece * kPieces, std::byte{1});
    const pattern::Access access = interleaved(comm->rank(), ranks, memory.data());
    EXPECT_TRUE(call(exchange, 1, plan, access, sink, tallies[static_cast<std::size_t>(comm->rank())]).ok());
  });
  return std::accumulate(tallies.begin(), tallies.end(), Tally{}, add);
}

constexpr std::uint64_t kBytes = kPiece * kPieces * 16;

class ExchangeCounts : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Nodes, ExchangeCounts, testing::Values(1, 2, 4, 8));

TEST_P(ExchangeCounts, EveryWindowIsOneWrite) {
  MemorySink sink;
  const Tally tally = run_sixteen(plan::Direction::write, GetParam(), sink);
  EXPECT_EQ(sink.writes, plan_for(plan::Direction::write, 16, GetParam()).windows());
  EXPECT_EQ(sink.reads, 0u);
  EXPECT_EQ(tally.file_writes, sink.writes);
  EXPECT_EQ(tally.file_write_bytes, kBytes);
  EXPECT_EQ(tally.hole_bytes, 0u);
}

TEST_P(ExchangeCounts, ANodeSendsOneMessageForEachWindowOfAnother) {
  MemorySink sink;
  const std::uint64_t nodes = GetParam(), windows = kBytes / kWindow;
  const Tally tally = run_sixteen(plan::Direction::write, GetParam(), sink);
  EXPECT_EQ(tally.messages, windows * (nodes - 1));
  const std::uint64_t others = kBytes / nodes * (nodes - 1);  // bytes that do not lie on the node that writes them
  EXPECT_GE(tally.message_bytes, others);
  EXPECT_LE(tally.message_bytes, others + tally.messages * 64);
}

TEST_P(ExchangeCounts, EveryByteIsReadOnceAndSentOnceToTheNodeThatNeedsIt) {
  MemorySink sink;
  for (std::uint64_t at = 0; at < kBytes; ++at) sink.bytes[at] = std::byte{7};
  const std::uint64_t nodes = GetParam(), windows = kBytes / kWindow;
  const Tally tally = run_sixteen(plan::Direction::read, GetParam(), sink);
  EXPECT_EQ(sink.reads, windows);
  EXPECT_EQ(sink.read_bytes, kBytes);
  EXPECT_EQ(tally.messages, 2 * windows * (nodes - 1));  // a question and an answer
  EXPECT_LE(tally.message_bytes, kBytes / nodes * (nodes - 1) + tally.messages * 64);
}

/// One of two ranks writes alone: half of the file are holes.
Tally write_alone(const plan::Plan& plan, MemorySink& sink) {
  Tally tally;
  const int node_of[] = {0};
  comm::run_as_threads(node_of, [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    std::vector<std::byte> memory(kPiece * kPieces, std::byte{1});
    EXPECT_TRUE(call(exchange, 1, plan, interleaved(0, 2, memory.data()), sink, tally).ok());
  });
  return tally;
}

TEST(ExchangeHoles, AreNeitherReadNorWrittenWhenRunsAre) {
  MemorySink sink;
  plan::Plan plan = plan_for(plan::Direction::write, 2, 1);
  plan.holes = plan::Holes::runs;
  const Tally tally = write_alone(plan, sink);
  EXPECT_EQ(tally.file_writes, kPieces);
  EXPECT_EQ(tally.modified, 0u);
  EXPECT_EQ(sink.reads, 0u);
  EXPECT_EQ(sink.bytes.size(), kPiece * kPieces);
}

TEST(ExchangeHoles, AreReadOnceForEachWindowThatIsModified) {
  MemorySink sink;
  plan::Plan plan = plan_for(plan::Direction::write, 2, 1);
  plan.holes = plan::Holes::modify;
  const Tally tally = write_alone(plan, sink);
  EXPECT_EQ(tally.modified, plan.windows());
  EXPECT_EQ(tally.file_writes, plan.windows());
  EXPECT_EQ(sink.reads, plan.windows());
  EXPECT_EQ(sink.size(), plan.span.end - kPiece) << "the file ends with the last byte that was written";
}

}  // namespace
}  // namespace pario::exchange
