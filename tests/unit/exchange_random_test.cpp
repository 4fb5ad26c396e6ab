// Random accesses with random numbers of ranks and nodes through windows of random sizes, compared
// with the file byte by byte.
#include "exchange_world.hpp"

namespace pario::exchange {
namespace {

constexpr int kCalls = 4;
constexpr std::uint64_t kOrigins[] = {0, 1000, (std::uint64_t{1} << 40) + 12345 * 8};

struct World {
  World(std::uint64_t seed) : random(seed) {
    ranks = static_cast<int>(random.one_in(4) ? random.between(1, 16) : random.between(1, 5));
    nodes = static_cast<int>(random.between(1, std::min(ranks, 4)));
    node_of = any_nodes(random, ranks, nodes);
    unit = std::uint64_t{1} << random.upto(3);
    origin = kOrigins[random.upto(2)] / unit * unit;
  }

  std::vector<Request> requests() {
    if (!kWithoutRaces && random.one_in(2)) return any_requests(random, ranks, unit, origin);
    return disjoint_requests(random, ranks, unit, origin, random.one_in(2));
  }
  /// Old content of the file, which shows bytes written into holes.
  void fill(MemoryFile& sink, base::Extent span) {
    for (std::uint64_t at = span.begin; at < span.end; ++at)
      if (random.between(0, 9) > 0) sink.bytes[at] = std::byte{0};
  }

  pattern::Random random;
  int ranks, nodes;
  std::vector<int> node_of;
  std::uint64_t unit, origin;
};

/// The possible bytes of the file after a write: one value per byte, or several where ranks
/// overlap.
using Expected = std::map<std::uint64_t, std::vector<std::byte>>;

void expect_file(const MemoryFile& sink, const Expected& expected, std::uint64_t end) {
  ASSERT_EQ(sink.size(), end);
  for (const auto& [at, values] : expected) {
    const auto found = sink.bytes.find(at);
    ASSERT_NE(found, sink.bytes.end()) << "byte " << at;
    ASSERT_NE(std::find(values.begin(), values.end(), found->second), values.end())
        << "byte " << at;
  }
  for (const auto& [at, value] : sink.bytes) {
    if (!expected.contains(at)) {
      ASSERT_EQ(value, std::byte{0}) << "byte " << at << " belongs to nobody";
    }
  }
}

void write_once(std::uint64_t seed) {
  World world(seed);
  MemoryFile sink;
  Expected expected;
  std::vector<std::vector<Request>> requests;
  std::vector<plan::Plan> plans;
  std::uint64_t end = 0;
  for (int call = 0; call < kCalls; ++call) {
    requests.push_back(world.requests());
    plans.push_back(
        any_plan(world.random, plan::Direction::write, requests.back(), world.nodes, world.unit));
    for (std::size_t rank = 0; rank < requests.back().size(); ++rank) {
      const std::vector<std::uint64_t>& file = requests.back()[rank].file;
      for (const std::uint64_t at : file) expected[at] = {};
    }
    end = std::max(end, plans.back().span.end);
  }
  for (int call = 0; call < kCalls; ++call) {
    Expected now;
    for (std::size_t rank = 0; rank < requests[call].size(); ++rank)
      for (std::size_t i = 0; i < requests[call][rank].file.size(); ++i)
        now[requests[call][rank].file[i]].push_back(value_of(static_cast<int>(rank), call, i));
    for (const auto& [at, values] : now) expected[at] = values;
  }
  if (world.random.one_in(2)) world.fill(sink, plans[0].span);
  end = std::max(end, sink.size());
  comm::run_as_threads(world.node_of, [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    Counters counters;
    for (int call = 0; call < kCalls; ++call) {
      const Request& request = requests[call][static_cast<std::size_t>(comm->rank())];
      std::vector<std::byte> memory(request.memory_size() + 1);
      for (std::size_t i = 0; i < request.file.size(); ++i)
        memory[i * request.memory_stride] = value_of(comm->rank(), call, i);
      const base::Status status = exchange::call(exchange, call + 1, plans[call],
                                                 request.access(memory.data()), sink, counters);
      ASSERT_TRUE(status.ok()) << status.error().text();
    }
  });
  expect_file(sink, expected, end);
}

void read_once(std::uint64_t seed) {
  World world(seed);
  MemoryFile sink;
  std::vector<std::vector<Request>> requests;
  std::vector<plan::Plan> plans;
  for (int call = 0; call < kCalls; ++call) {
    requests.push_back(world.random.one_in(2)
                           ? any_requests(world.random, world.ranks, world.unit, world.origin)
                           : world.requests());
    plans.push_back(
        any_plan(world.random, plan::Direction::read, requests.back(), world.nodes, world.unit));
  }
  const base::Extent span = plans[0].span;
  const std::uint64_t end = span.begin + world.random.upto(span.length() + 20);
  for (std::uint64_t at = span.begin; at < end; ++at)
    sink.bytes[at] = static_cast<std::byte>(at * 13 % 251 + 1);
  const std::uint64_t size = sink.size();
  comm::run_as_threads(world.node_of, [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    Counters counters;
    for (int call = 0; call < kCalls; ++call) {
      const Request& request = requests[call][static_cast<std::size_t>(comm->rank())];
      std::vector<std::byte> memory(request.memory_size() + 1, std::byte{255});
      const base::Status status = exchange::call(exchange, call + 1, plans[call],
                                                 request.access(memory.data()), sink, counters);
      ASSERT_TRUE(status.ok()) << status.error().text();
      std::uint64_t before_end = 0;
      for (std::size_t i = 0; i < request.file.size(); ++i) {
        const std::uint64_t at = request.file[i];
        const std::byte value = memory[i * request.memory_stride];
        before_end += at < size ? 1 : 0;
        const auto stored = sink.bytes.find(at);
        ASSERT_EQ(value, at >= size                   ? std::byte{255}
                         : stored == sink.bytes.end() ? std::byte{0}
                                                      : stored->second)
            << "byte " << at;
      }
      ASSERT_EQ(exchange.bytes_read(), before_end);
    }
  });
}

TEST(ExchangeRandom, WritesAreInTheFileAndNothingElse) {
  const std::uint64_t seed = pattern::first_seed(), cases = pattern::cases(60);
  for (std::uint64_t i = 0; i < cases && !HasFatalFailure(); ++i) {
    SCOPED_TRACE("PARIO_TEST_SEED=" + std::to_string(seed + i));
    write_once(seed + i);
  }
}

TEST(ExchangeRandom, ReadsReturnBytesBeforeTheEndOfTheFile) {
  const std::uint64_t seed = pattern::first_seed(), cases = pattern::cases(60);
  for (std::uint64_t i = 0; i < cases && !HasFatalFailure(); ++i) {
    SCOPED_TRACE("PARIO_TEST_SEED=" + std::to_string(seed + i));
    read_once(seed + i);
  }
}

}  // namespace
}  // namespace pario::exchange
