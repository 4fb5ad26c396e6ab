// Independent writes that are kept in memory: when the program, the other ranks and the file see
// them.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "engine_keep_support.hpp"

namespace pario::engine {
namespace {

TEST(EngineWriteBehind, ManyWritesBecomeOne) {
  const Directory directory;
  with_file(kOne, behind(directory / "one"), [&](SharedFile& file, comm::Comm&) {
    for (std::uint64_t i = 0; i < 100; ++i) write_bytes(file, (i * 37 % 100) * 8, 8);
    EXPECT_TRUE(contents(directory / "one").empty()) << "nothing has been written yet";
    EXPECT_OK(file.sync());
    EXPECT_EQ(contents(directory / "one"), bytes_at(0, 800));
    const Statistics statistics = file.statistics();
    EXPECT_EQ(statistics.independent_writes, 100u);
    EXPECT_EQ(statistics.written_behind, 100u);
    EXPECT_EQ(statistics.writes_behind, 1u);
    EXPECT_EQ(statistics.transfer.system_writes, 1u);
    EXPECT_EQ(statistics.bytes_written, 800u);
  });
}

TEST(EngineWriteBehind, IsOffUnlessAskedFor) {
  const Directory directory;
  with_file(kOne, fresh(directory / "off"), [&](SharedFile& file, comm::Comm&) {
    write_bytes(file, 0, 8);
    EXPECT_EQ(contents(directory / "off").size(), 8u);
    EXPECT_EQ(file.statistics().written_behind, 0u);
  });
}

TEST(EngineWriteBehind, StaysWithinItsBound) {
  const Directory directory;
  with_file(kOne, behind(directory / "bound", 4096), [&](SharedFile& file, comm::Comm&) {
    for (std::uint64_t i = 0; i < 1000; ++i) write_bytes(file, i * 20, 10);
    const Statistics before = file.statistics();
    EXPECT_OK(file.sync());
    EXPECT_GT(before.bytes_written, 2 * 4096u);
    EXPECT_GE(
        file.statistics().transfer.system_writes + file.statistics().transfer.read_modify_writes,
        2u);
    EXPECT_EQ(file.statistics().written_behind, 1000u);
  });
  const std::vector<std::byte> found = contents(directory / "bound");
  for (std::uint64_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], i % 20 < 10 ? byte_at(i) : std::byte{0}) << i;
}

TEST(EngineWriteBehind, InterleavedPiecesOfRanksAreWrittenTogetherWithoutReads) {
  const Directory directory;
  OpenRequest request = behind(directory / "interleaved", 1 << 20);
  request.hints.romio_cb_write = hints::Choice::disable;  // for collective calls only
  request.hints.romio_ds_write = hints::Choice::disable;
  std::atomic<std::uint64_t> written = 0;
  with_file(kFour, request, [&](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> bytes(100'000);
    for (std::uint64_t array = 0; array < 3; ++array) {
      pattern::Access access = plain(bytes, 0);
      access.view = make_alternating_view(ranks.rank(), 4, 100);
      access.view.displacement += array * 400'000;
      fill(access);
      EXPECT_OK(file.write(access, With::alone, "write_at"));
    }
    EXPECT_EQ(file.statistics().written_behind, 3u);
    EXPECT_EQ(file.statistics().transfer.system_writes, 0u);
    EXPECT_OK(file.sync());
    const exchange::Counters transfer = file.statistics().transfer;
    EXPECT_EQ(transfer.system_reads, 0u);
    EXPECT_LE(transfer.system_writes, 20u) << "of 3,000 pieces of this rank";
    written += transfer.system_write_bytes;
  });
  EXPECT_EQ(written, 1'200'000u);
  EXPECT_EQ(contents(directory / "interleaved"), bytes_at(0, 1'200'000));
}

TEST(EngineWriteBehind, IsWrittenAfterItsDelay) {
  const Directory directory;
  OpenRequest request = behind(directory / "late");
  request.hints.pario_write_behind_delay = 1;
  for (const std::span<const int> node_of : {std::span<const int>(kOne), {kFourOfOne}})
    with_file(node_of, request, [&](SharedFile& file, comm::Comm& ranks) {
      if (ranks.rank() == 0) write_bytes(file, 0, 8);
      while (contents(directory / "late").empty())
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_EQ(contents(directory / "late"), bytes_at(0, 8));
      EXPECT_EQ(read_bytes(file, 0, 8), bytes_at(0, 8));
    });
}

TEST(EngineWriteBehind, LargeWritesGoPastInOrder) {
  const Directory directory;
  with_file(kOne, behind(directory / "large", 1 << 20), [&](SharedFile& file, comm::Comm&) {
    std::vector<std::byte> old(100, std::byte{2});
    EXPECT_OK(file.write(plain(old, 1000), With::alone, "write_at"));
    write_bytes(file, 0, 100'000);
    write_bytes(file, 200'000, 8);
    EXPECT_EQ(file.statistics().written_behind, 2u);
  });
  std::vector<std::byte> expected = bytes_at(0, 100'000);
  expected.resize(200'000);
  const std::vector<std::byte> last = bytes_at(200'000, 8);
  expected.insert(expected.end(), last.begin(), last.end());
  EXPECT_EQ(contents(directory / "large"), expected);
}

TEST(EngineWriteBehind, TheRankReadsWhatItHasWritten) {
  const Directory directory;
  with_file(kOne, behind(directory / "read"), [&](SharedFile& file, comm::Comm&) {
    write_bytes(file, 100, 50);
    EXPECT_EQ(*file.size(), 150u);
    EXPECT_EQ(file.statistics().writes_behind, 0u) << "asking for the size writes nothing";
    EXPECT_EQ(read_bytes(file, 0, 50), std::vector<std::byte>(50)) << "the hole before it";
    write_bytes(file, 200, 50);
    EXPECT_EQ(read_bytes(file, 120, 100).size(), 100u);
    EXPECT_EQ(read_bytes(file, 200, 100), bytes_at(200, 50));
    std::vector<std::byte> again(10, std::byte{7});
    EXPECT_OK(file.write(plain(again, 205), With::alone, "write_at"));
    EXPECT_EQ(read_bytes(file, 205, 10), again);
  });
}

TEST(EngineWriteBehind, IsWrittenBeforeCallsThatNeedIt) {
  const Directory directory;
  const std::string path = directory / "needed";
  with_file(kOne, behind(path), [&](SharedFile& file, comm::Comm&) {
    std::uint64_t size = 0;
    const auto grows = [&] { write_bytes(file, size, 10), size += 10; };
    grows();
    EXPECT_OK(file.sync());
    EXPECT_EQ(contents(path).size(), size);
    grows();
    EXPECT_EQ(read_bytes(file, 0, 10, With::together), bytes_at(0, 10));
    EXPECT_EQ(contents(path).size(), size);
    grows();
    EXPECT_OK(file.resize(size + 5));
    EXPECT_EQ(contents(path).size(), size += 5);
    grows();
    EXPECT_OK(file.set_atomic(true));
    EXPECT_EQ(contents(path).size(), size);
    grows();
    EXPECT_EQ(contents(path).size(), size) << "in atomic mode nothing is kept back";
    EXPECT_OK(file.set_atomic(false));
    grows();
    hints::FileHints hints = file.hints();
    hints.pario_write_behind = 0;
    EXPECT_OK(file.set_hints(hints));
    EXPECT_EQ(contents(path).size(), size);
    hints.pario_write_behind = 1 << 16;
    EXPECT_OK(file.set_hints(hints));
    grows();
    write_kept_writes(Reader::ranks);
    EXPECT_EQ(contents(path).size(), size);
    grows();
    const auto operation = file.start(plan::Direction::read, {}, With::together, "iread_all");
    operation->wait();
    EXPECT_EQ(contents(path).size(), size);
    grows();
  });
  EXPECT_EQ(contents(path).size(), 95u) << "closing writes the rest";
}

TEST(EngineWriteBehind, ErrorsAreThoseOfTheNextCallOfTheRank) {
  const Directory directory;
  comm::run_as_threads(kOne, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file = SharedFile::open(ranks, behind(directory / "error"),
                                 breaking(true, {40, 60}, ENOSPC, broken_disk()));
    ASSERT_TRUE(file.ok());
    write_bytes(**file, 30, 20);
    write_kept_writes(Reader::ranks);
    std::vector<std::byte> bytes(10);
    const auto next = (*file)->read(plain(bytes, 500), With::alone, "read_at");
    ASSERT_FALSE(next.ok());
    EXPECT_EQ(next.error().number, ENOSPC);
    EXPECT_EQ(next.error().where, (base::Extent{30, 50}));
    EXPECT_NE(next.error().text().find("kept back"), std::string::npos) << next.error().text();
    EXPECT_TRUE((*file)->read(plain(bytes, 500), With::alone, "read_at").ok()) << "reported once";
    EXPECT_OK((*file)->close());
  });
}

/// The node of rank 2 cannot write the bytes that rank 2 has kept; all ranks make the collective
/// `call` next and get the error. In a node of several ranks, any of them writes.
void expect_error_on_all_ranks(std::span<const int> node_of,
                               const std::function<base::Status(SharedFile&, comm::Comm&)>& call) {
  const Directory directory;
  const auto broken = broken_disk();
  comm::run_as_threads(node_of, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file = SharedFile::open(ranks, behind(directory / "shared_error"),
                                 breaking(ranks->node() == node_of[2], {100, 200}, EIO, broken));
    ASSERT_TRUE(file.ok());
    if (ranks->rank() == 2) write_bytes(**file, 150, 10);
    const base::Status status = call(**file, *ranks);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().number, EIO) << status.error().text();
    EXPECT_EQ(node_of[static_cast<std::size_t>(status.error().rank)], node_of[2]);
    EXPECT_EQ(status.error().where, (base::Extent{150, 160}));
    EXPECT_OK((*file)->close());
  });
}

TEST(EngineWriteBehind, ErrorsReachAllRanks) {
  constexpr int kAlone[] = {0, 0, 1}, kOneNode[] = {0, 0, 0};
  for (const std::span<const int> node_of : {std::span<const int>(kFour), {kAlone}, {kOneNode}}) {
    expect_error_on_all_ranks(node_of, [](SharedFile& file, comm::Comm&) { return file.sync(); });
    expect_error_on_all_ranks(node_of,
                              [](SharedFile& file, comm::Comm&) { return file.resize(1000); });
    expect_error_on_all_ranks(node_of, [](SharedFile& file, comm::Comm& ranks) {
      std::vector<std::byte> bytes(10);
      return file
          .write(plain(bytes, static_cast<std::uint64_t>(ranks.rank()) * 10), With::together,
                 "write_all")
          .status();
    });
    expect_error_on_all_ranks(node_of, [](SharedFile& file, comm::Comm&) {
      return file.read({}, With::together, "read_all").status();
    });
    expect_error_on_all_ranks(node_of, [](SharedFile& file, comm::Comm&) { return file.close(); });
  }
}

/// Each rank writes its pieces of a view of `bytes` bytes in turn, `at_once` pieces in a call.
void write_alternating(SharedFile& file, const comm::Comm& ranks, std::uint64_t bytes,
                       std::uint64_t at_once) {
  constexpr std::uint64_t kPiece = 100;
  std::vector<std::byte> buffer(kPiece * at_once);
  pattern::Access access = plain(buffer, 0);
  access.view = make_alternating_view(ranks.rank(), ranks.size(), kPiece);
  const auto parts = static_cast<std::uint64_t>(ranks.size());
  for (; access.position < bytes / parts; access.position += buffer.size()) {
    fill(access);
    EXPECT_OK(file.write(access, With::alone, "write_at"));
  }
}

TEST(EngineWriteBehind, RanksOfANodeFillBlocksTogether) {
  for (const std::uint64_t at_once : {1, 50}) {
    const Directory directory;
    std::mutex mutex;
    Statistics all;
    constexpr std::uint64_t kBytes = 2'000'000;
    with_file(kFourOfOne, behind(directory / "together", 1 << 20),
              [&](SharedFile& file, comm::Comm& ranks) {
                write_alternating(file, ranks, kBytes, at_once);
                EXPECT_OK(file.sync());
                const std::scoped_lock lock(mutex);
                all += file.statistics();
              });
    EXPECT_EQ(contents(directory / "together"), bytes_at(0, kBytes));
    EXPECT_EQ(all.transfer.read_modify_writes, 0u);
    EXPECT_EQ(all.transfer.system_writes, all.writes_behind);
    EXPECT_EQ(all.transfer.system_writes, kBytes / (128 << 10) + 1) << "blocks and the rest";
  }
}

TEST(EngineWriteBehind, RanksOfANodeReadTheWritesOfEachOther) {
  const Directory directory;
  with_file(kFourOfOne, behind(directory / "node"), [&](SharedFile& file, comm::Comm& ranks) {
    const auto rank = static_cast<std::uint64_t>(ranks.rank());
    write_bytes(file, rank * 100, 100);
    write_kept_writes(Reader::ranks);
    EXPECT_OK(file.agree(0, {}, "message"));
    EXPECT_TRUE(contents(directory / "node").empty()) << "no rank needs the file for that";
    EXPECT_EQ(*file.size(), 400u);
    EXPECT_OK(file.agree(0, {}, "message"));
    EXPECT_EQ(read_bytes(file, (rank + 1) % 4 * 100, 100), bytes_at((rank + 1) % 4 * 100, 100));
    write_bytes(file, 1000 + rank * 100, 100);
    write_kept_writes(Reader::all);
    EXPECT_GE(contents(directory / "node").size(), 1100 + rank * 100);
  });
}

TEST(EngineWriteBehind, OtherNodesReadWhatIsWrittenBeforeAMessage) {
  const Directory directory;
  with_file(kFour, behind(directory / "nodes"), [&](SharedFile& file, comm::Comm& ranks) {
    const auto rank = static_cast<std::uint64_t>(ranks.rank());
    write_bytes(file, rank * 100, 100);
    write_kept_writes(Reader::ranks);
    EXPECT_OK(file.agree(0, {}, "message"));
    EXPECT_EQ(contents(directory / "nodes"), bytes_at(0, 400));
  });
}

TEST(EngineWriteBehind, ARankThatWritesForOthersGetsTheError) {
  const Directory directory;
  comm::run_as_threads(kFourOfOne, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file = SharedFile::open(ranks, behind(directory / "other"),
                                 breaking(true, {40, 60}, ENOSPC, broken_disk()));
    ASSERT_TRUE(file.ok());
    if (ranks->rank() == 0) write_bytes(**file, 30, 20);
    EXPECT_OK((*file)->agree(0, {}, "message"));
    if (ranks->rank() == 1) {
      std::vector<std::byte> bytes(10);
      const auto read = (*file)->read(plain(bytes, 30), With::alone, "read_at");
      ASSERT_FALSE(read.ok());
      EXPECT_EQ(read.error().number, ENOSPC);
      EXPECT_EQ(read.error().where, (base::Extent{30, 50}));
    }
    EXPECT_OK((*file)->close());
  });
}

TEST(EngineWriteBehind, IsVerifiedWhenItIsWritten) {
  comm::run_as_threads(kOne, [&](std::shared_ptr<comm::Comm> ranks) {
    OpenRequest request = behind("null");
    request.hints.pario_verify = true;
    auto file = SharedFile::open(
        ranks, request, [](const file::OpenRequest&) -> base::Result<std::unique_ptr<file::File>> {
          return file::make_null("null");
        });
    ASSERT_TRUE(file.ok());
    write_bytes(**file, 10, 10);
    EXPECT_FALSE((*file)->sync().ok());
    EXPECT_OK((*file)->close());
  });
}

}  // namespace
}  // namespace pario::engine
