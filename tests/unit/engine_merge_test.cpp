// Collective writes that are kept in memory and exchanged as one.
#include <cerrno>

#include "engine_keep_support.hpp"
#include "pattern_model.hpp"

namespace pario::engine {
namespace {

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

TEST(EngineMerge, LargeCallsAreExchangedAtOnce) {
  const Directory directory;
  const OpenRequest request = merging(directory / "large", 1 << 20);
  with_file(kFourOfOne, request, [&](SharedFile& file, comm::Comm& ranks) {
    const auto rank = static_cast<std::uint64_t>(ranks.rank());
    write_bytes(file, rank * 100, 100, With::together);
    EXPECT_EQ(file.statistics().merged_calls, 1u);
    write_bytes(file, 1000 + rank * 10'000, 10'000, With::together);
    EXPECT_EQ(file.statistics().merged_exchanges, 1u) << "order is kept";
    EXPECT_EQ(file.statistics().merged_calls, 1u) << "keeping 10 kB costs more than an exchange";
    EXPECT_EQ(contents(directory / "large").size(), 41'000u);
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

/// One random collective write after the other: each rank writes one run, in the place of any rank.
/// In between single ranks read, which writes their part alone. `model`: the bytes of the file.
void write_random_runs(SharedFile& file, comm::Comm& ranks, std::uint64_t seed,
                       std::vector<std::byte>& model) {
  pattern::Random random(seed);
  const auto size = static_cast<std::uint64_t>(ranks.size());
  const auto rank = static_cast<std::uint64_t>(ranks.rank());
  for (int call = 1; call <= 40; ++call) {
    const std::uint64_t base = random.upto(300), shift = random.upto(size);
    for (std::uint64_t one = 0; one < size; ++one) {
      const std::uint64_t place = base + (one + shift) % size * 60, length = random.upto(60);
      std::vector<std::byte> bytes(length, static_cast<std::byte>(call));
      std::ranges::copy(bytes, model.begin() + static_cast<std::ptrdiff_t>(place));
      if (one == rank) EXPECT_OK(file.write(plain(bytes, place), With::together, "write_all"));
    }
    if (random.one_in(5) && random.upto(size - 1) == rank) read_bytes(file, base, 60);
    EXPECT_OK(ranks.barrier());
  }
}

TEST(EngineMerge, LaterCallsOfOtherRanksWin) {
  const Directory directory;
  for (const std::vector<int>& nodes : shapes())
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      std::vector<std::byte> expected(2000);
      with_file(nodes, merging(directory / "others"), [&](SharedFile& file, comm::Comm& ranks) {
        std::vector<std::byte> model(2000);
        write_random_runs(file, ranks, seed, model);
        EXPECT_OK(file.sync());
        EXPECT_GT(file.statistics().merged_calls, 20u);
        if (ranks.rank() == 0) expected = model;
      });
      std::vector<std::byte> found = contents(directory / "others");
      found.resize(expected.size());
      EXPECT_EQ(found, expected) << nodes.size() << " ranks, seed " << seed;
    }
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
    EXPECT_OK((*file)->set_atomic(true));
    failing((*file)->write(plain(none, 2000 + place), With::together, "write_all").status());
    EXPECT_OK((*file)->set_atomic(false));
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

}  // namespace
}  // namespace pario::engine
