// Series of small reads that take their bytes from windows read ahead.
#include "parallel/engine/read_ahead.hpp"

#include <array>
#include <atomic>
#include <barrier>
#include <thread>

#include "engine_support.hpp"
#include "pattern_model.hpp"

namespace pario::engine {
namespace {

constexpr int kPair[] = {0, 0};
constexpr std::uint64_t kReadSize = 512, kReads = 1024, kNever = 1ull << 60;

/// A byte that depends on its offset, and is another one in the next window.
std::byte content_of(std::uint64_t offset) {
  return static_cast<std::byte>(((offset >> 8) * 0x9e3779b97f4a7c15 >> 56) ^ offset);
}

std::vector<std::byte> content_at(std::uint64_t begin, std::uint64_t length) {
  std::vector<std::byte> bytes(length);
  for (std::uint64_t i = 0; i < length; ++i) bytes[i] = content_of(begin + i);
  return bytes;
}

/// Ranks of a node in one thread, on a file in memory whose reads are counted.
class Ranks {
 public:
  explicit Ranks(int ranks, std::uint64_t most_age_ns = kNever)
      : memory_(ReadAhead::memory_size(ranks) / sizeof(Line)),
        file_(file::make_faulty(file::make_memory("ahead"),
                                [this](const std::string& name, base::Extent where) {
                                  if (name != "read") return file::Fault{};
                                  const bool is_window = where.length() % base::kPage == 0;
                                  ++(is_window ? windows_ : reads_), bytes_ += where.length();
                                  if (is_window) std::exchange(during_window_, [] {})();
                                  return file::Fault{};
                                })) {
    write(0, kReadSize * kReads);
    for (int rank = 0; rank < ranks; ++rank)
      ranks_.push_back(std::make_unique<ReadAhead>(reinterpret_cast<std::byte*>(memory_.data()),
                                                   *file_, rank, ranks, most_age_ns));
  }
  /// Changes bytes without a note.
  void write(std::uint64_t begin, std::uint64_t length, std::byte change = std::byte{0}) {
    std::vector<std::byte> bytes = content_at(begin, length);
    for (std::byte& byte : bytes) byte ^= change;
    EXPECT_OK(file_->write(begin, bytes));
  }
  /// Reads as a rank does. Returns the first byte, changed back; expects the others to be alike.
  std::byte read(std::size_t rank, std::uint64_t begin, std::uint64_t length = kReadSize) {
    std::vector<std::byte> bytes(length);
    std::optional<std::uint64_t> by_system;
    if (!ranks_[rank]->read(base::Extent::at(begin, length), bytes.data(), by_system)) {
      const auto moved = file_->read(begin, bytes);
      EXPECT_TRUE(moved && *moved == length);
    }
    for (std::uint64_t i = 0; i < length; ++i) bytes[i] ^= content_of(begin + i);
    EXPECT_EQ(bytes, std::vector<std::byte>(length, bytes[0])) << "at " << begin;
    return bytes[0];
  }
  /// Calls `act` while a rank reads its next window from the file.
  void during_next_window(std::function<void()> act) { during_window_ = std::move(act); }
  ReadAhead& of(std::size_t rank) { return *ranks_[rank]; }
  /// Returns the reads of the file since the last call.
  int take_reads() { return std::exchange(reads_, 0) + std::exchange(windows_, 0); }
  int windows() const { return windows_; }
  /// Returns the bytes read from the file since the last call.
  std::uint64_t take_bytes() { return std::exchange(bytes_, 0); }

 private:
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes = {};
  };
  int reads_ = 0, windows_ = 0;
  std::uint64_t bytes_ = 0;
  std::function<void()> during_window_ = [] {};
  std::vector<Line> memory_;
  std::unique_ptr<file::File> file_;
  std::vector<std::unique_ptr<ReadAhead>> ranks_;
};

constexpr std::byte kOld{0}, kNew{7};
constexpr int kWindows = kReadSize * kReads / ReadAhead::kWindow;

TEST(ReadAhead, OneReadOfTheFileServesManyOfASeries) {
  Ranks ranks(1);
  for (std::uint64_t i = 0; i < kReads; ++i) EXPECT_EQ(ranks.read(0, i * kReadSize), kOld);
  EXPECT_EQ(ranks.take_reads(), kWindows + 3 + 3)
      << "windows grow to their size; three reads show a series from byte 0 on";
}

TEST(ReadAhead, AShortSeriesReadsFewBytesInVain) {
  Ranks ranks(1);
  ranks.take_bytes();
  for (std::uint64_t i = 0; i < ReadAhead::kFirstReads + 4; ++i) ranks.read(0, i * kReadSize);
  const std::uint64_t most = base::round_up((ReadAhead::kFirstServed + 3) * kReadSize, base::kPage);
  EXPECT_LE(ranks.take_bytes(), 3 * kReadSize + most);
}

TEST(ReadAhead, WindowsGrowWithTheirSeriesAndBeginAnewWithTheNext) {
  Ranks ranks(1);
  const auto sizes = [&](std::uint64_t first) {
    std::string text;
    for (std::uint64_t i = 0; i < 400; ++i) {
      ranks.take_bytes();
      ranks.read(0, first + i * kReadSize);
      const std::uint64_t bytes = ranks.take_bytes();
      if (bytes > kReadSize) text += std::to_string(bytes >> 10) + " ";
    }
    return text;
  };
  EXPECT_EQ(sizes(0), "12 48 64 64 64 ");
  note_event();
  EXPECT_EQ(sizes(104 * kReadSize), "12 48 64 64 64 ");
}

TEST(ReadAhead, RanksInTurnShareWindows) {
  Ranks ranks(2);
  for (std::uint64_t i = 0; i < kReads; ++i) EXPECT_EQ(ranks.read(i % 2, i * kReadSize), kOld);
  EXPECT_EQ(ranks.take_reads(), kWindows + 2 + 2 * 4)
      << "windows grow to their size; each rank drops earlier windows at first";
}

TEST(ReadAhead, AWindowThatIsBeingReadIsNotReadByOtherRanks) {
  Ranks ranks(2);
  std::uint64_t next = 0;
  int together = 0;
  for (; next < 100; ++next)
    for (const std::size_t rank : {0u, 1u}) ranks.read(rank, next * kReadSize);
  ranks.take_reads();
  for (; together == 0; ++next) {
    ranks.during_next_window([&] { ranks.read(1, next * kReadSize), ++together; });
    ranks.read(0, next * kReadSize);
    if (together == 0) ranks.read(1, next * kReadSize);
  }
  EXPECT_EQ(ranks.windows(), 1);
  EXPECT_EQ(ranks.take_reads(), 2) << "the other rank reads its own bytes alone";
}

TEST(ReadAhead, APieceAtTheEndOfAWindowBringsNoWindowOfItsOwn) {
  Ranks ranks(2);
  constexpr std::uint64_t kPiece = 900, kPieces = kReadSize * kReads / kPiece;
  ranks.take_bytes();
  for (std::uint64_t i = 0; i + 1 < kPieces; i += 2) {
    ranks.read(1, (i + 1) * kPiece, kPiece);
    ranks.read(0, i * kPiece, kPiece);
  }
  EXPECT_LT(ranks.take_bytes(), kReadSize * kReads * 5 / 4);
}

TEST(ReadAhead, ALateRankKeepsItsWindow) {
  Ranks ranks(2);
  std::uint64_t late = 0;
  for (std::uint64_t i = 0; i < kReads; ++i) {
    EXPECT_EQ(ranks.read(0, i * kReadSize), kOld);
    if (i < 200 || i % 3 == 0) {
      EXPECT_EQ(ranks.read(1, late++ * kReadSize), kOld);
    }
  }
}

TEST(ReadAhead, OtherReadsGoToTheFile) {
  const auto count = [](std::uint64_t length, const std::function<std::uint64_t(int)>& place) {
    Ranks ranks(2);
    for (int i = 0; i < 40; ++i) ranks.read(0, place(i), length);
    return ranks.take_reads();
  };
  EXPECT_EQ(count(kReadSize, [](int) { return 0; }), 40) << "one place";
  EXPECT_EQ(count(kReadSize, [](int i) { return (40 - i) * kReadSize; }), 40) << "descending";
  EXPECT_EQ(count(kReadSize, [](int i) { return i * kReadSize * 3; }), 40) << "far apart";
  EXPECT_EQ(count(ReadAhead::kMostPiece + 1, [](int i) { return i * (ReadAhead::kMostPiece + 1); }),
            40)
      << "large";
}

TEST(ReadAhead, WindowsThatServeFewReadsBecomeRare) {
  Ranks ranks(1);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t first = (i % 7) * 100 * kReadSize;
    for (std::uint64_t j = 0; j < 7; ++j) ranks.read(0, first + j * kReadSize);
    note_event();
  }
  EXPECT_EQ(ranks.windows(), 1);
}

/// Reads a window's first bytes, changes the file by `change`, and reads on.
void expect_change_seen(const std::function<void(Ranks&)>& change,
                        std::uint64_t most_age_ns = kNever) {
  Ranks ranks(2, most_age_ns);
  for (std::uint64_t i = 0; i < 6; ++i) ranks.read(0, i * kReadSize);
  ranks.write(0, kReadSize * kReads, kNew);
  change(ranks);
  EXPECT_EQ(ranks.read(0, 6 * kReadSize), kNew);
  for (std::uint64_t i = 7; i < 40; ++i) EXPECT_EQ(ranks.read(1, i * kReadSize), kNew);
}

TEST(ReadAhead, ReadsSeeChangesOfWhichTheProcessKnows) {
  expect_change_seen([](Ranks& ranks) { ranks.of(0).note_change(); });
  expect_change_seen([](Ranks& ranks) { ranks.of(1).note_change(); });
  expect_change_seen([](Ranks&) { note_event(); });
  expect_change_seen([](Ranks&) {}, 0);
  Ranks ranks(1);
  for (std::uint64_t i = 0; i < 6; ++i) ranks.read(0, i * kReadSize);
  ranks.write(0, kReadSize * kReads, kNew);
  EXPECT_EQ(ranks.read(0, 6 * kReadSize), kOld) << "the test cannot fail";
}

/// Ranks in threads read series, while all bytes change again and again.
TEST(ReadAhead, NoReadMixesTheBytesOfTwoWindows) {
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes = {};
  };
  constexpr int kRanks = 3;
  std::vector<Line> memory(ReadAhead::memory_size(kRanks) / sizeof(Line));
  const Directory directory;
  auto file = file::open({.path = directory / "mixed", .flags = O_RDWR | O_CREAT});
  ASSERT_TRUE(file.ok());
  EXPECT_OK((*file)->write(0, content_at(0, kReadSize * kReads)));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      ReadAhead ahead(reinterpret_cast<std::byte*>(memory.data()), **file, rank, kRanks, kNever);
      pattern::Random same(1), random(static_cast<std::uint64_t>(rank) + 1);
      std::vector<std::byte> bytes(kReadSize);
      for (int series = 0; series < 100; ++series) {
        const std::uint64_t first = same.upto(kReads - 1);
        for (std::uint64_t i = first; i < std::min(first + 400, kReads); ++i) {
          std::optional<std::uint64_t> by_system;
          if (ahead.read(base::Extent::at(i * kReadSize, kReadSize), bytes.data(), by_system)) {
            ASSERT_EQ(bytes, content_at(i * kReadSize, kReadSize));
          }
          if (random.one_in(1000)) ahead.note_change();
        }
      }
    });
}

/// Random reads and writes of two ranks, through two handles of each, against a model.
/// Returns the calls that took their bytes from a window.
std::uint64_t expect_current_bytes(std::uint64_t seed, const Directory& directory) {
  const std::string path = directory / std::to_string(seed);
  constexpr std::uint64_t kSize = 200'000;
  std::vector<std::byte> model(kSize);
  std::barrier<> step(2);
  std::atomic<std::uint64_t> served = 0;
  OpenRequest request = fresh(path);
  request.read_ahead_age_ns = kNever;
  with_file(kPair, request, [&](SharedFile& file, comm::Comm& ranks) {
    auto other = SharedFile::open(comm::make_self(), path, hints::default_file_hints());
    ASSERT_TRUE(other.ok());
    pattern::Random random(seed);  // the same choices on both ranks
    std::uint64_t place = 0, size = kSize - 1000;
    if (ranks.rank() == 0) EXPECT_OK((*other)->resize(size));
    for (int call = 0; call < 600; ++call) {
      const bool writes = random.one_in(60),
                 mine = ranks.rank() == static_cast<int>(random.upto(1));
      const bool own = random.one_in(2);
      const std::uint64_t length = 1 + random.upto(random.one_in(20) ? 20'000 : 700);
      if (random.one_in(50) || place + length > kSize) place = random.upto(kSize - length);
      std::vector<std::byte> bytes(length, static_cast<std::byte>(call));
      const auto where = base::Extent::at(place, length);
      place += length;
      step.arrive_and_wait();
      if (writes) {
        if (mine) {
          EXPECT_OK((own ? file : **other)
                        .move_run(plan::Direction::write, where, bytes.data(), With::alone, "w"));
          std::ranges::copy(bytes, model.begin() + static_cast<std::ptrdiff_t>(where.begin));
        }
        size = std::max(size, where.end);
        step.arrive_and_wait();
        continue;
      }
      const auto moved = file.move_run(plan::Direction::read, where, bytes.data(),
                                       own ? With::alone : With::together, "r");
      EXPECT_OK(moved);
      if (!moved) continue;
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(*moved),
                             model.begin() + static_cast<std::ptrdiff_t>(where.begin)))
          << "call " << call << " of rank " << ranks.rank();
      EXPECT_EQ(*moved, base::intersection(where, {0, size}).length());
    }
    const Statistics statistics = file.statistics();
    served += statistics.independent_reads + statistics.collective_reads -
              statistics.transfer.system_reads;
    EXPECT_OK((*other)->close());
  });
  return served;
}

TEST(ReadAhead, RandomReadsSeeTheBytesOfAllWrites) {
  const Directory directory;
  std::uint64_t served = 0;
  for (std::uint64_t seed = 1; seed <= 12 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    served += expect_current_bytes(seed, directory);
  }
  EXPECT_GT(served, 0u) << "no windows were used";
}

TEST(ReadAhead, SeriesOfCollectiveReadsTakeFewSystemCalls) {
  const auto count = [](const std::function<void(OpenRequest&)>& change, bool atomic) {
    const Directory directory;
    OpenRequest request = fresh(directory / "calls");
    request.read_ahead_age_ns = kNever;
    change(request);
    std::atomic<std::uint64_t> reads = 0;
    with_file(kPair, request, [&](SharedFile& file, comm::Comm& ranks) {
      EXPECT_OK(file.resize(kReadSize * kReads));
      if (atomic) EXPECT_OK(file.set_atomic(true));
      std::vector<std::byte> bytes(kReadSize);
      for (std::uint64_t i = 0; i < kReads; i += 2)
        EXPECT_OK(file.move_run(
            plan::Direction::read,
            base::Extent::at((i + static_cast<std::uint64_t>(ranks.rank())) * kReadSize, kReadSize),
            bytes.data(), With::together, "read_all"));
      reads += file.statistics().transfer.system_reads;
    });
    return reads.load();
  };
  EXPECT_LT(count([](OpenRequest&) {}, false), kReads / 2);
  EXPECT_EQ(count([](OpenRequest&) {}, true), kReads);
  EXPECT_EQ(count([](auto& open) { open.hints.pario_run_ahead = hints::Choice::disable; }, false),
            kReads);
  EXPECT_EQ(count([](auto& open) { open.hints.pario_verify = true; }, false), kReads);
}

}  // namespace
}  // namespace pario::engine
