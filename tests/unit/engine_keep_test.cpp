// Kept writes: when the program, the other ranks and the file see them.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "engine_support.hpp"
#include "pattern_model.hpp"

namespace pario::engine {
namespace {

constexpr int kOne[] = {0}, kFourOfOne[] = {0, 0, 0, 0};

OpenRequest behind(const std::string& path, std::uint64_t bound = 1 << 16) {
  OpenRequest request = fresh(path);
  request.hints.pario_write_behind = bound;
  return request;
}

OpenRequest merging(const std::string& path, std::uint64_t bound = 1 << 16) {
  OpenRequest request = fresh(path);
  request.hints.pario_merge_collectives = bound;
  return request;
}

void write_bytes(SharedFile& file, std::uint64_t offset, std::uint64_t length,
                 With with = With::alone) {
  std::vector<std::byte> bytes = bytes_at(offset, length);
  const auto written = file.write(plain(bytes, offset), with, "write_at");
  ASSERT_TRUE(written.ok()) << written.error().text();
  EXPECT_EQ(*written, length);
}

std::vector<std::byte> read_bytes(SharedFile& file, std::uint64_t offset, std::uint64_t length,
                                  With with = With::alone) {
  std::vector<std::byte> bytes(length);
  const auto read = file.read(plain(bytes, offset), with, "read_at");
  EXPECT_TRUE(read.ok()) << read.error().text();
  bytes.resize(read.ok() ? *read : 0);
  return bytes;
}

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
    file.set_atomic(true);
    EXPECT_EQ(contents(path).size(), size);
    grows();
    EXPECT_EQ(contents(path).size(), size) << "in atomic mode nothing is kept back";
    file.set_atomic(false);
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

/// Opens a file that fails to write [begin, end) on this rank if `mine`, with that number, while
/// `broken`.
Opener breaking(bool mine, base::Extent where, int number,
                const std::shared_ptr<std::atomic<bool>>& broken) {
  return [=](const file::OpenRequest& request) -> base::Result<std::unique_ptr<file::File>> {
    auto file = file::open(request);
    if (!file || !mine) return file;
    return file::make_faulty(std::move(*file), [=](const char* name, base::Extent extent) {
      const bool hit = *broken && std::string_view(name) == "write" &&
                       !base::intersection(extent, where).empty();
      return hit ? file::Fault{file::Fault::Kind::error, number} : file::Fault{};
    });
  };
}

std::shared_ptr<std::atomic<bool>> broken_disk() {
  return std::make_shared<std::atomic<bool>>(true);
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

TEST(EngineMerge, CallsBecomeOneExchange) {
  const Directory directory;
  OpenRequest request = merging(directory / "merged", 1 << 20);
  request.hints.romio_cb_write = hints::Choice::enable;
  with_file(kFour, request, [&](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> bytes(1000);
    for (std::uint64_t array = 0; array < 4; ++array) {
      pattern::Access access = plain(bytes, 0);
      access.view = make_alternating_view(ranks.rank(), 4, 100);
      access.view.displacement += array * 4000;
      fill(access);
      EXPECT_OK(file.write(access, With::together, "write_all"));
      std::ranges::fill(bytes, std::byte{0});
    }
    EXPECT_EQ(*file.size(), 16'000u);
    EXPECT_EQ(contents(directory / "merged").size(), 0u);
    EXPECT_OK(file.sync());
    EXPECT_EQ(contents(directory / "merged"), bytes_at(0, 16'000));
    const Statistics statistics = file.statistics();
    EXPECT_EQ(statistics.merged_calls, 4u);
    EXPECT_EQ(statistics.merged_exchanges, 1u);
    EXPECT_EQ(statistics.through_windows, 1u);
    EXPECT_EQ(statistics.bytes_written, 4000u);
  });
}

TEST(EngineMerge, CallsThatDoNotFitFlushTheMergedOnes) {
  const Directory directory;
  with_file(kFour, merging(directory / "full", 10'000), [&](SharedFile& file, comm::Comm& ranks) {
    const auto rank = static_cast<std::uint64_t>(ranks.rank());
    // Only rank 3's bytes are too many for a third call.
    for (std::uint64_t call = 0; call < 4; ++call)
      write_bytes(file, call * 10'000 + rank * 100, rank == 3 ? 2000 : 10, With::together);
    EXPECT_EQ(file.statistics().merged_exchanges, 1u);
    EXPECT_EQ(file.statistics().merged_calls, 4u);
    write_bytes(file, 100'000 + rank * 6000, 6000, With::together);
    EXPECT_EQ(file.statistics().merged_exchanges, 2u) << "order is kept";
    EXPECT_EQ(file.statistics().merged_calls, 4u) << "too large to be kept";
    EXPECT_EQ(contents(directory / "full").size(), 124'000u);
  });
}

TEST(EngineMerge, LaterCallsWinAndReadsSeeThem) {
  const Directory directory;
  with_file(kFour, merging(directory / "order"), [&](SharedFile& file, comm::Comm& ranks) {
    const auto place = static_cast<std::uint64_t>(ranks.rank()) * 100;
    std::vector<std::byte> first(100, std::byte{1}), second(50, std::byte{2}),
        third(20, std::byte{3});
    EXPECT_OK(file.write(plain(first, place), With::together, "write_all"));
    const auto operation =
        file.start(plan::Direction::write, plain(second, place + 30), With::together, "iwrite_all");
    operation->wait();
    EXPECT_OK(operation->result());
    std::vector<std::byte> expected = first;
    std::fill_n(expected.begin() + 30, 50, std::byte{2});
    EXPECT_EQ(read_bytes(file, place, 100), expected) << "alone";
    EXPECT_EQ(file.statistics().merged_exchanges, 0u);
    EXPECT_OK(file.write(plain(third, place), With::together, "write_all"));
    std::fill_n(expected.begin(), 20, std::byte{3});
    EXPECT_EQ(read_bytes(file, place, 100, With::together), expected) << "together";
    EXPECT_EQ(file.statistics().merged_exchanges, 1u);
    EXPECT_OK(file.write(plain(first, place), With::together, "write_all"));
    EXPECT_OK(file.write(plain(third, place + 10), With::alone, "write_at"));
    expected = first;
    std::fill_n(expected.begin() + 10, 20, std::byte{3});
    EXPECT_OK(file.sync());
    EXPECT_EQ(read_bytes(file, place, 100), expected) << "an independent write after a merged one";
  });
}

TEST(EngineMerge, ErrorsReachAllRanksByTheCallThatExchanges) {
  const Directory directory;
  const auto broken = broken_disk();
  comm::run_as_threads(kFour, [&](std::shared_ptr<comm::Comm> ranks) {
    OpenRequest request = merging(directory / "broken");
    request.hints.romio_cb_write = hints::Choice::disable;
    auto file =
        SharedFile::open(ranks, request, breaking(ranks->rank() == 1, {0, 1000}, ENOSPC, broken));
    ASSERT_TRUE(file.ok());
    const auto failing = [&](const base::Status& status) {
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().number, ENOSPC) << status.error().text();
      EXPECT_EQ(status.error().rank, 1);
      EXPECT_EQ(status.error().where, (base::Extent{10, 20})) << status.error().text();
    };
    const auto place = static_cast<std::uint64_t>(ranks->rank()) * 10;
    std::vector<std::byte> none(10);
    write_bytes(**file, place, 10, With::together);
    failing((*file)->sync());
    write_bytes(**file, place, 10, With::together);
    failing((*file)->read(plain(none, 0), With::together, "read_all").status());
    write_bytes(**file, place, 10, With::together);
    (*file)->set_atomic(true);
    failing((*file)->write(plain(none, 2000 + place), With::together, "write_all").status());
    (*file)->set_atomic(false);
    write_bytes(**file, place, 10, With::together);
    failing((*file)->close());
  });
}

TEST(EngineMerge, ARankInAnotherCallIsFoundAndNothingIsLost) {
  const Directory directory;
  with_file(kFour, merging(directory / "mixed"), [&](SharedFile& file, comm::Comm& ranks) {
    const auto place = static_cast<std::uint64_t>(ranks.rank()) * 10;
    write_bytes(file, place, 10, With::together);
    std::vector<std::byte> bytes = bytes_at(100 + place, 10);
    const auto moved = ranks.rank() == 3
                           ? file.read(plain(bytes, place), With::together, "read_all")
                           : file.write(plain(bytes, 100 + place), With::together, "write_all");
    EXPECT_FALSE(moved.ok());
    static_cast<void>(file.sync());
    EXPECT_OK(file.sync());
    EXPECT_EQ(contents(directory / "mixed"), bytes_at(0, 40));
  });
}

TEST(EngineMerge, ARankThatCannotTakePartStopsTheCallOnly) {
  const Directory directory;
  with_file(kFour, merging(directory / "refused"), [&](SharedFile& file, comm::Comm& ranks) {
    const auto place = static_cast<std::uint64_t>(ranks.rank()) * 10;
    std::vector<std::byte> bytes(10);
    for (const auto direction : {plan::Direction::write, plan::Direction::read}) {
      write_bytes(file, place, 10, With::together);
      if (ranks.rank() == 1)
        file.refuse(direction, {.number = EINVAL}, "bad");
      else if (direction == plan::Direction::write)
        EXPECT_FALSE(file.write(plain(bytes, place), With::together, "write_all").ok());
      else
        EXPECT_FALSE(file.read(plain(bytes, place), With::together, "read_all").ok());
    }
    EXPECT_OK(file.sync());
    EXPECT_EQ(contents(directory / "refused"), bytes_at(0, 40));
  });
}

TEST(EngineKeep, KeptBytesAreWrittenAtTheEndOfTheProgram) {
  const Directory directory;
  const std::string path = directory / "exit";
  const auto leave = [&] {
    OpenRequest request = behind(path);
    request.hints.pario_merge_collectives = 1 << 16;
    auto file = SharedFile::open(comm::make_self(), request);
    write_bytes(**file, 0, 50, With::together);
    write_bytes(**file, 50, 50);
    static_cast<void>(file->release());
    std::exit(0);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(contents(path), bytes_at(0, 100));
}

TEST(EngineKeep, LostBytesAreReportedAtTheEndOfTheProgram) {
  const Directory directory;
  const auto leave = [&] {
    const auto ranks = comm::make_self();
    auto file = SharedFile::open(ranks, behind(directory / "lost"),
                                 breaking(true, {0, 100}, ENOSPC, broken_disk()));
    write_bytes(**file, 10, 50);
    static_cast<void>(file->release());
    std::exit(0);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(0),
              "the program has ended, and pwrite .*lost \\[10, 60\\): ENOSPC");
}

/// Random calls of ranks, each with bytes of its own, against a model of each rank's bytes.
class Player {
 public:
  Player(std::uint64_t seed, SharedFile& file, const comm::Comm& ranks)
      : common_(seed),
        own_(seed * 100 + static_cast<std::uint64_t>(ranks.rank())),
        file_(file),
        view_(make_alternating_view(ranks.rank(), ranks.size(), 7)) {}

  void step() {
    switch (common_.upto(9)) {
      case 0:
        EXPECT_OK(file_.sync());
        return;
      case 1:
        return read(With::together);
      case 2:
      case 3:
      case 4:
        return write(With::together);
      default:
        for (std::uint64_t i = own_.upto(4); i > 0; --i)
          own_.one_in(3) ? read(With::alone) : write(With::alone);
    }
  }
  const std::vector<std::byte>& model() const { return model_; }
  const pattern::FileView& view() const { return view_; }

 private:
  pattern::Access access(std::vector<std::byte>& bytes, std::uint64_t position) const {
    return {.buffer = bytes.data(), .view = view_, .position = position, .bytes = bytes.size()};
  }
  void write(With with) {
    std::vector<std::byte> bytes(own_.one_in(20) ? own_.upto(5000) : own_.upto(60),
                                 static_cast<std::byte>(own_.upto(255)));
    const std::uint64_t position = own_.upto(3000);
    const bool starts =
        (with == With::together ? common_ : own_).one_in(4);  // other ranks start theirs, too
    const auto written = starts ? start_and_wait(plan::Direction::write, bytes, position, with)
                                : file_.write(access(bytes, position), with, "write");
    EXPECT_TRUE(written.ok() && *written == bytes.size());
    if (bytes.empty()) return;
    model_.resize(std::max<std::size_t>(model_.size(), position + bytes.size()));
    std::ranges::copy(bytes, model_.begin() + static_cast<std::ptrdiff_t>(position));
  }
  base::Result<std::uint64_t> start_and_wait(plan::Direction direction,
                                             std::vector<std::byte>& bytes, std::uint64_t position,
                                             With with) {
    const auto operation = file_.start(direction, access(bytes, position), with, "start");
    operation->wait();
    return operation->result();
  }
  void read(With with) {
    const std::uint64_t position = model_.empty() ? 0 : own_.upto(model_.size() - 1);
    const auto length = static_cast<std::ptrdiff_t>(
        std::min<std::uint64_t>(own_.upto(100), model_.size() - position));
    std::vector<std::byte> bytes(static_cast<std::size_t>(length));
    const auto count = file_.read(access(bytes, position), with, "read");
    const auto begin = model_.begin() + static_cast<std::ptrdiff_t>(position);
    EXPECT_TRUE(count.ok() && *count == bytes.size());
    EXPECT_EQ(bytes, std::vector<std::byte>(begin, begin + length));
  }

  pattern::Random common_, own_;
  SharedFile& file_;
  pattern::FileView view_;
  std::vector<std::byte> model_;
};

void play(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  pattern::Random random(seed);
  const auto all_shapes = shapes();
  const std::vector<int> shape = all_shapes[random.upto(all_shapes.size() - 1)];
  const Directory directory;
  OpenRequest request = fresh(directory / "random");
  request.hints.pario_write_behind = random.one_in(3) ? 0 : 256u << random.upto(8);
  request.hints.pario_merge_collectives = random.one_in(3) ? 0 : 256u << random.upto(8);
  request.hints.romio_cb_write = static_cast<hints::Choice>(random.upto(2));
  request.hints.romio_ds_write = static_cast<hints::Choice>(random.upto(2));
  request.hints.cb_buffer_size = 4096;
  if (shape.back() > 0 && request.hints.romio_ds_write == hints::Choice::enable)
    request.hints.romio_ds_write = hints::Choice::automatic;
  std::vector<std::byte> expected;
  std::mutex mutex;
  with_file(shape, request, [&](SharedFile& file, comm::Comm& ranks) {
    Player player(seed, file, ranks);
    for (int i = 0; i < 30; ++i) player.step();
    const std::scoped_lock lock(mutex);
    for (std::size_t i = 0; i < player.model().size(); ++i) {
      const std::uint64_t offset = player.view().offset_of(i);
      expected.resize(std::max<std::size_t>(expected.size(), offset + 1));
      expected[offset] = player.model()[i];
    }
  });
  EXPECT_EQ(contents(request.path), expected);
}

TEST(EngineKeep, AgreesWithAModelOfBytes) {
  const std::uint64_t seed = pattern::first_seed(), cases = pattern::cases(100);
  for (std::uint64_t i = 0; i < cases && !::testing::Test::HasFailure(); ++i) play(seed + i);
}

}  // namespace
}  // namespace pario::engine
