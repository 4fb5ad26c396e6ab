// Windows of a node: the ranks that share them are objects on one memory, in threads or processes.
#include "parallel/engine/node_windows.hpp"

#include <sys/mman.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

#include "engine_support.hpp"
#include "pattern_model.hpp"

namespace pario::engine {
namespace {

constexpr std::uint64_t kWindow = 4096;

/// Zeroed memory that forked processes share.
class Memory {
 public:
  explicit Memory(std::size_t size)
      : size_(size),
        data_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~Memory() { ::munmap(data_, size_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  std::size_t size_;
  void* data_;
};

/// A file of `size` bytes in memory, and windows for it.
class Node {
 public:
  explicit Node(std::uint32_t buffers, std::size_t size = 20 * kWindow)
      : sizes_{kWindow, buffers},
        size_(size),
        file_(size),
        memory_(NodeWindows::memory_size(sizes_)) {
    NodeWindows::initialise(memory_.data(), sizes_);
  }
  /// The windows as one rank uses them.
  NodeWindows make_rank() {
    return {memory_.data(), sizes_, [this](const pattern::Access& access) { write(access); }};
  }
  std::vector<std::byte> file() const { return {file_.data(), file_.data() + size_}; }
  /// The spans of the writes, in their order.
  const std::vector<base::Extent>& writes() const { return writes_; }

 private:
  void write(const pattern::Access& access) {
    {
      const std::scoped_lock lock(mutex_);
      writes_.push_back(pattern::summarise(access).span);
    }
    pattern::Walker(access).gather({0, size_}, file_.data(), {});
  }

  NodeWindows::Sizes sizes_;
  std::size_t size_;
  Memory file_, memory_;
  std::mutex mutex_;
  std::vector<base::Extent> writes_;
};

void add(NodeWindows& windows, std::uint64_t offset, std::uint64_t length) {
  std::vector<std::byte> bytes = bytes_at(offset, length);
  windows.add(plain(bytes, offset));
}

void add_value(NodeWindows& windows, std::uint64_t offset, std::uint64_t length, int value) {
  std::vector<std::byte> bytes(length, static_cast<std::byte>(value));
  windows.add(plain(bytes, offset));
}

/// Adds part `part` of `parts` of the first `length` bytes, in pieces of `piece` bytes.
void add_part(NodeWindows& windows, int part, int parts, std::uint64_t piece,
              std::uint64_t length) {
  std::vector<std::byte> bytes(length / static_cast<std::uint64_t>(parts));
  pattern::Access access = plain(bytes, 0);
  access.view = make_alternating_view(part, parts, piece);
  fill(access);
  windows.add(access);
}

TEST(EngineNodeWindows, TheRankThatFillsAWindowWritesIt) {
  Node node(8);
  NodeWindows first = node.make_rank(), second = node.make_rank();
  add_part(first, 0, 2, 64, 2 * kWindow);
  EXPECT_TRUE(node.writes().empty());
  EXPECT_EQ(second.end(), 2 * kWindow - 64);
  add_part(second, 1, 2, 64, 2 * kWindow);
  EXPECT_EQ(node.writes(), (std::vector<base::Extent>{{0, kWindow}, {kWindow, 2 * kWindow}}));
  EXPECT_EQ(first.end(), 0u);
  std::vector<std::byte> expected = bytes_at(0, 2 * kWindow);
  expected.resize(20 * kWindow);
  EXPECT_EQ(node.file(), expected);
}

TEST(EngineNodeWindows, AWindowWithHolesIsWrittenWithoutThem) {
  Node node(8);
  NodeWindows rank = node.make_rank();
  add_part(rank, 1, 3, 10, 300);
  add(rank, kWindow + 5, 100);
  rank.flush();
  EXPECT_EQ(node.writes(), (std::vector<base::Extent>{{10, 290}, {kWindow + 5, kWindow + 105}}));
  std::vector<std::byte> expected(20 * kWindow);
  for (std::uint64_t i = 0; i < kWindow + 105; ++i)
    if ((i < 300 && i / 10 % 3 == 1) || i >= kWindow + 5) expected[i] = byte_at(i);
  EXPECT_EQ(node.file(), expected);
  rank.flush();
  EXPECT_EQ(node.writes().size(), 2u) << "written once";
}

TEST(EngineNodeWindows, LaterBytesReplaceEarlierOnesAndFillNothing) {
  Node node(8);
  NodeWindows rank = node.make_rank();
  for (int i = 0; i < 100; ++i) add_value(rank, 100, 100, i);
  add_value(rank, 150, 10, 7);
  EXPECT_TRUE(node.writes().empty()) << "10 kB were added, but 100 bytes are covered";
  rank.flush();
  EXPECT_EQ(node.writes(), (std::vector<base::Extent>{{100, 200}}));
  EXPECT_EQ(node.file()[149], std::byte{99});
  EXPECT_EQ(node.file()[150], std::byte{7});
  EXPECT_EQ(node.file()[160], std::byte{99});
}

TEST(EngineNodeWindows, ReadersGetTheBytesOfOtherRanks) {
  Node node(8);
  NodeWindows writer = node.make_rank(), reader = node.make_rank();
  for (const std::uint64_t window : {1, 3, 9}) add(writer, window * kWindow + 10, 10);
  reader.flush_overlapping({2 * kWindow, 3 * kWindow});
  EXPECT_TRUE(node.writes().empty());
  reader.flush_overlapping({3 * kWindow + 15, 3 * kWindow + 16});
  EXPECT_EQ(node.writes(), (std::vector<base::Extent>{{3 * kWindow + 10, 3 * kWindow + 20}}));
  reader.flush_overlapping({0, 1'000'000 * kWindow});
  EXPECT_EQ(node.writes().size(), 3u) << "more windows than slots";
}

TEST(EngineNodeWindows, WithoutMemoryTheOldestWindowIsWritten) {
  Node node(2);
  NodeWindows rank = node.make_rank();
  add(rank, 1 * kWindow, 10);
  add(rank, 0 * kWindow, 10);
  add(rank, 2 * kWindow, 10);
  EXPECT_EQ(node.writes(), (std::vector<base::Extent>{{kWindow, kWindow + 10}}));
  add(rank, 6 * kWindow, 10);  // the slot of window 2
  EXPECT_EQ(node.writes().back(), (base::Extent{2 * kWindow, 2 * kWindow + 10}));
  EXPECT_EQ(rank.end(), 6 * kWindow + 10);
}

TEST(EngineNodeWindows, OldWindowsAreWrittenOnRequest) {
  Node node(8);
  NodeWindows rank = node.make_rank();
  add(rank, 0, 10);
  const std::uint64_t now = base::monotonic_ns() + 1;
  while (base::monotonic_ns() <= now) {
  }
  add(rank, 5 * kWindow, 10);
  rank.flush_older(now);
  EXPECT_EQ(node.writes(), (std::vector<base::Extent>{{0, 10}}));
}

TEST(EngineNodeWindows, SizesStayWithinTheMemory) {
  for (const std::uint64_t bound : {4096, 1 << 16, 1 << 20, 1 << 26})
    for (const std::uint64_t unit : {1, 4096, 1 << 16, 1 << 20, 1 << 24, 100'000}) {
      const NodeWindows::Sizes sizes = NodeWindows::choose_sizes(bound, unit);
      EXPECT_GE(sizes.buffers, 1u);
      EXPECT_TRUE(sizes.buffers == 1 || sizes.buffers * sizes.window < bound);
    }
  EXPECT_EQ(NodeWindows::choose_sizes(64 << 20, 1 << 20).window, 1u << 20) << "whole stripes";
}

/// Ranks with bytes of their own write, rewrite and flush at random.
void play(std::uint64_t seed, Node& node, int rank, std::vector<std::byte>& model) {
  constexpr int kRanks = 4;
  pattern::Random random(seed * kRanks + static_cast<std::uint64_t>(rank));
  NodeWindows windows = node.make_rank();
  const pattern::FileView view = make_alternating_view(rank, kRanks, 100);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::byte> bytes(1 + random.upto(random.one_in(10) ? 8000 : 300),
                                 static_cast<std::byte>(random.upto(255)));
    const std::uint64_t position = random.upto(model.size() - bytes.size());
    windows.add(
        {.buffer = bytes.data(), .view = view, .position = position, .bytes = bytes.size()});
    std::ranges::copy(bytes, model.begin() + static_cast<std::ptrdiff_t>(position));
    const std::uint64_t offset = view.offset_of(position);
    if (random.one_in(10)) windows.flush_overlapping(base::Extent::at(offset, 500));
    if (random.one_in(40)) windows.flush();
  }
}

TEST(EngineNodeWindows, ThreadsAgreeWithAModelOfBytes) {
  const std::uint64_t seed = pattern::first_seed(), cases = pattern::cases(10);
  for (std::uint64_t i = 0; i < cases && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed + i));
    Node node(3 + static_cast<std::uint32_t>(i % 5));
    std::vector<std::vector<std::byte>> models(4, std::vector<std::byte>(20'000));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 4; ++rank)
      threads.emplace_back(
          [&, rank] { play(seed + i, node, rank, models[static_cast<std::size_t>(rank)]); });
    for (std::thread& thread : threads) thread.join();
    node.make_rank().flush();
    std::vector<std::byte> expected(20 * kWindow);
    for (std::size_t at = 0; at < 80'000; ++at)
      expected[at] = models[at / 100 % 4][at / 400 * 100 + at % 100];
    EXPECT_EQ(node.file(), expected);
  }
}

constexpr std::uint64_t kPiece = 64;

/// Adds every second piece again and again; `added`: the pieces that were kept.
void add_odd_pieces(NodeWindows& windows, std::atomic<std::uint64_t>& added) {
  for (std::uint64_t i = 0;; i = (i + 1) % (10 * kWindow / kPiece)) {
    add(windows, (2 * i + 1) * kPiece, kPiece);
    added.store(std::max(added.load(), i + 1));
  }
}

TEST(EngineNodeWindows, TheBytesOfAKilledRankAreWritten) {
  for (std::uint64_t round = 0; round < 30 && !HasFailure(); ++round) {
    Node node(4);
    const Memory shared(sizeof(std::atomic<std::uint64_t>));
    auto& added = *new (shared.data()) std::atomic<std::uint64_t>(0);
    NodeWindows windows = node.make_rank();
    const pid_t child = ::fork();
    if (child == 0) add_odd_pieces(windows, added);
    while (added.load() < round * 20) std::this_thread::yield();
    for (std::uint64_t i = 0; i < 10 * kWindow / kPiece; ++i) {
      add(windows, 2 * i * kPiece, kPiece);
      if (i == round * 4) ::kill(child, SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    windows.flush();
    const std::vector<std::byte> file = node.file();
    for (std::uint64_t i = 0; i < 20 * kWindow; ++i)
      if (i / kPiece % 2 == 0 || i / kPiece / 2 < added.load()) {
        ASSERT_EQ(file[i], byte_at(i)) << "byte " << i << " in round " << round;
      }
  }
}

/// Fills windows, which takes the only buffer and frees it again, as often as possible.
void fill_windows(NodeWindows& windows, std::atomic<std::uint64_t>& added) {
  std::vector<std::byte> bytes = bytes_at(kWindow, kWindow);
  for (;; added.fetch_add(1)) windows.add(plain(bytes, kWindow));
}

TEST(EngineNodeWindows, AKilledRankKeepsNoMemory) {
  for (std::uint64_t round = 0; round < 200 && !HasFailure(); ++round) {
    Node node(1);
    const Memory shared(sizeof(std::atomic<std::uint64_t>));
    auto& added = *new (shared.data()) std::atomic<std::uint64_t>(0);
    NodeWindows windows = node.make_rank();
    const pid_t child = ::fork();
    if (child == 0) fill_windows(windows, added);
    while (added.load() < 10 + round) std::this_thread::yield();
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    add(windows, 0, kPiece);
    add(windows, 2 * kWindow, kPiece);
    EXPECT_EQ(windows.end(), 2 * kWindow + kPiece);
    windows.flush();
    EXPECT_EQ(node.file()[2 * kWindow], byte_at(2 * kWindow));
  }
}

}  // namespace
}  // namespace pario::engine
