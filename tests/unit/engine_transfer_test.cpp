#include <atomic>
#include "engine_support.hpp"

namespace pario::engine {
namespace {

/// Every rank writes its part of pieces that ranks take in turn, then reads it back; the file must
/// be complete.
void deal_and_check(std::span<const int> shape, OpenRequest request, With with, std::uint64_t piece,
                    std::uint64_t pieces) {
  const int ranks_count = static_cast<int>(shape.size());
  with_file(shape, request, [&](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> buffer(piece * pieces);
    pattern::Access access = plain(buffer, 0);
    access.view = make_alternating_view(ranks.rank(), ranks_count, piece);
    fill(access);
    const std::vector<std::byte> expected = buffer;
    const auto written = file.write(access, with, "write");
    ASSERT_TRUE(written.ok()) << written.error().text();
    EXPECT_EQ(*written, buffer.size());
    EXPECT_OK(file.sync());
    std::ranges::fill(buffer, std::byte{0});
    const auto read = file.read(access, with, "read");
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(*read, buffer.size());
    EXPECT_EQ(buffer, expected);
  });
  EXPECT_EQ(contents(request.path), bytes_at(0, piece * pieces * shape.size()));
}

class EngineTransfer : public ::testing::TestWithParam<With> {};
INSTANTIATE_TEST_SUITE_P(AloneAndTogether, EngineTransfer,
                         ::testing::Values(With::alone, With::together), [](const auto& with) {
                           return with.param == With::alone ? "alone" : "together";
                         });

TEST_P(EngineTransfer, DealsOutPieces) {
  const Directory directory;
  for (const auto& shape : shapes())
    for (const std::uint64_t piece : {1u, 8u, 100u, 4096u})
      deal_and_check(shape, fresh(directory / "a"), GetParam(), piece, 70);
}

TEST_P(EngineTransfer, SievesWithSmallWindows) {
  const Directory directory;
  OpenRequest request = fresh(directory / "sieve");
  request.hints.romio_ds_write = hints::Choice::enable;
  request.hints.romio_ds_read = hints::Choice::enable;
  request.hints.romio_cb_write = hints::Choice::disable;
  request.hints.romio_cb_read = hints::Choice::disable;
  request.hints.ind_wr_buffer_size = 4096;
  request.hints.ind_rd_buffer_size = 4096;
  for (const auto& shape : shapes()) deal_and_check(shape, request, GetParam(), 24, 1000);
}

TEST_P(EngineTransfer, UsesManySmallWindowsTogether) {
  const Directory directory;
  OpenRequest request = fresh(directory / "windows");
  request.hints.romio_cb_write = hints::Choice::enable;
  request.hints.romio_cb_read = hints::Choice::enable;
  request.hints.cb_buffer_size = 4096;
  request.hints.pario_buffers = 2;
  for (const auto& shape : shapes()) deal_and_check(shape, request, GetParam(), 40, 1500);
}

TEST_P(EngineTransfer, LeavesHolesAlone) {
  const Directory directory;
  OpenRequest request = fresh(directory / "holes");
  {
    auto file = SharedFile::open(comm::make_self(), request);
    std::vector<std::byte> old(3000, std::byte{7});
    EXPECT_OK((*file)->write(plain(old, 0), With::alone, "write"));
    EXPECT_OK((*file)->close());
  }
  request.flags = O_RDWR;
  constexpr int kNodes[] = {0, 0};
  with_file(kNodes, request, [&](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> buffer(1000);
    pattern::Access access = plain(buffer, 0);
    access.view = make_alternating_view(2 * ranks.rank(), 4, 10);
    fill(access);
    EXPECT_OK(file.write(access, GetParam(), "write"));
  });
  const std::vector<std::byte> found = contents(request.path);
  ASSERT_EQ(found.size(), 99u * 40 + 30);  // up to the last byte written
  for (std::uint64_t i = 0; i < found.size(); ++i) {
    const std::byte hole = i < 3000 ? std::byte{7} : std::byte{0};
    ASSERT_EQ(found[i], i / 10 % 2 == 0 ? byte_at(i) : hole) << i;
  }
}

TEST_P(EngineTransfer, CountsBytesBeforeTheEndOfTheFile) {
  const Directory directory;
  constexpr int kNodes[] = {0, 0};
  with_file(kNodes, fresh(directory / "end"), [&](SharedFile& file, comm::Comm& ranks) {
    EXPECT_OK(file.resize(105));
    std::vector<std::byte> buffer(100, std::byte{9});
    pattern::Access access = plain(buffer, 0);
    access.view = make_alternating_view(ranks.rank(), 2, 10);
    const auto read = file.read(access, GetParam(), "read");
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(*read, ranks.rank() == 0 ? 55u : 50u);
    EXPECT_EQ(buffer[49], std::byte{0});
    EXPECT_EQ(buffer[60], std::byte{9});
  });
}

TEST_P(EngineTransfer, TakesMemoryInPieces) {
  const Directory directory;
  for (const std::uint64_t piece : {4u, 3000u}) {
    with_file(std::vector<int>{0}, fresh(directory / "memory"), [&](SharedFile& file, comm::Comm&) {
      std::vector<std::byte> memory(piece * 2 * 1500);
      for (std::uint64_t i = 0; i < 1500; ++i)
        for (std::uint64_t j = 0; j < piece; ++j)
          memory[i * 2 * piece + j] = byte_at(i * piece + j);
      pattern::Access access{.buffer = memory.data(), .bytes = piece * 1500};
      access.memory =
          pattern::TypeMap::block(piece).with_extent(0, static_cast<std::int64_t>(2 * piece));
      EXPECT_OK(file.write(access, GetParam(), "write"));
      std::vector<std::byte> again(memory.size());
      access.buffer = again.data();
      EXPECT_OK(file.read(access, GetParam(), "read"));
      for (std::uint64_t i = 0; i < 1500; ++i)
        std::fill_n(memory.begin() + static_cast<long>((2 * i + 1) * piece), piece, std::byte{0});
      EXPECT_EQ(again, memory);
    });
    EXPECT_EQ(contents(directory / "memory"), bytes_at(0, piece * 1500));
  }
}

TEST_P(EngineTransfer, IsAtomicWhenAsked) {
  const Directory directory;
  constexpr int kOneNode[] = {0, 0, 0, 0};
  with_file(kOneNode, fresh(directory / "atomic"), [&](SharedFile& file, comm::Comm& ranks) {
    EXPECT_OK(file.set_atomic(true));
    EXPECT_TRUE(file.atomic());
    std::vector<std::byte> buffer(4000, static_cast<std::byte>(ranks.rank() + 1));
    pattern::Access access = plain(buffer, 0);
    access.view = make_alternating_view(0, 2, 10);
    EXPECT_OK(file.write(access, GetParam(), "write"));
    EXPECT_OK(file.agree(0, {}, "agree"));
    EXPECT_OK(file.read(access, GetParam(), "read"));
    EXPECT_EQ(std::ranges::count(buffer, buffer[0]), 4000);
  });
}

TEST_P(EngineTransfer, VerifiesWrittenBytes) {
  const Directory directory;
  OpenRequest request = fresh(directory / "verify");
  request.hints.pario_verify = true;
  deal_and_check(std::vector<int>{0, 0, 0}, request, GetParam(), 50, 100);
}

TEST(EngineTransferAlone, LosesNothingBetweenSievedAndPlainWrites) {
  const Directory directory;
  OpenRequest request = fresh(directory / "mixed");
  request.hints.romio_ds_write = hints::Choice::enable;
  constexpr int kFour[] = {0, 0, 0, 0};
  constexpr std::uint64_t kShare = 16, kShares = 400;
  with_file(kFour, request, [&](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> buffer(kShare * kShares);
    pattern::Access all = plain(buffer, 0);
    all.view = make_alternating_view(ranks.rank(), 4, kShare);
    fill(all);
    for (int round = 0; round < 5; ++round) {
      if (ranks.rank() % 2 == 0) {
        EXPECT_OK(file.write(all, With::alone, "write_at"));
      } else {
        for (std::uint64_t piece = 0; piece < kShares; ++piece) {
          pattern::Access one = all;
          one.position = piece * kShare;
          one.buffer += piece * kShare;
          one.bytes = kShare;
          EXPECT_OK(file.write(one, With::alone, "write_at"));
        }
      }
    }
  });
  EXPECT_EQ(contents(request.path), bytes_at(0, 4 * kShare * kShares));
}

TEST(EngineTransferTogether, AtomicWritesThatOverlapMoveEachByteOnce) {
  const Directory directory;
  constexpr int kRanks[] = {0, 0, 0};
  for (const bool one_run : {true, false}) {
    const auto view_of = [&](int rank) -> pattern::FileView {
      const auto shift = static_cast<std::uint64_t>(rank);
      if (one_run) return {.displacement = 9600 * shift};
      return {.displacement = 64 * shift,
              .filetype = pattern::TypeMap::block(128).with_extent(0, 256)};
    };
    OpenRequest request = fresh(directory / "overlap");
    request.hints.cb_buffer_size = 4096;
    std::atomic<std::uint64_t> written = 0;
    with_file(kRanks, request, [&](SharedFile& file, comm::Comm& ranks) {
      EXPECT_OK(file.set_atomic(true));
      std::vector<std::byte> buffer(19'200, static_cast<std::byte>(ranks.rank() + 1));
      pattern::Access access = plain(buffer, 0);
      access.view = view_of(ranks.rank());
      EXPECT_OK(file.write(access, With::together, "write_all"));
      written += file.statistics().transfer.system_write_bytes;
    });
    std::vector<std::byte> expected(38'400);
    for (const int rank : {0, 1, 2})
      for (std::uint64_t i = 0; i < 19'200; ++i)
        expected[view_of(rank).offset_of(i)] = static_cast<std::byte>(rank + 1);
    EXPECT_EQ(contents(request.path), expected) << "the bytes of the highest rank stay";
    EXPECT_EQ(written, expected.size());
  }
}

TEST(EngineTransferTogether, WritesAFileThatIsOpenForWritingOnly) {
  const Directory directory;
  OpenRequest request = fresh(directory / "writing");
  request.flags = O_WRONLY | O_CREAT;
  request.hints.romio_ds_write = hints::Choice::enable;
  constexpr int kNodes[] = {0, 0};
  with_file(kNodes, request, [&](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> buffer(1000);
    pattern::Access access = plain(buffer, 0);
    access.view = make_alternating_view(2 * ranks.rank(), 4, 10);
    fill(access);
    for (const With with : {With::alone, With::together})
      EXPECT_OK(file.write(access, with, "write"));
  });
}

TEST(EngineTransferTogether, AcceptsRanksWithoutData) {
  const Directory directory;
  for (const auto& shape : shapes())
    with_file(shape, fresh(directory / "few"), [&](SharedFile& file, comm::Comm& ranks) {
      std::vector<std::byte> buffer = bytes_at(0, ranks.rank() == 0 ? 100 : 0);
      EXPECT_OK(file.write(plain(buffer, 0), With::together, "write"));
      buffer.clear();
      EXPECT_EQ(file.write(plain(buffer, 0), With::together, "write").value(), 0u);
      EXPECT_EQ(file.read(plain(buffer, 0), With::together, "read").value(), 0u);
    });
}

TEST(EngineTransferTogether, CountsItsCalls) {
  const Directory directory;
  constexpr int kNodes[] = {0, 0};
  with_file(kNodes, fresh(directory / "figures"), [&](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> buffer = bytes_at(static_cast<std::uint64_t>(ranks.rank()) * 100, 100);
    EXPECT_OK(file.write(plain(buffer, static_cast<std::uint64_t>(ranks.rank()) * 100),
                         With::together, "write"));
    EXPECT_OK(file.read(plain(buffer, 0), With::alone, "read"));
    const Statistics figures = file.statistics();
    EXPECT_EQ(figures.collective_writes, 1u);
    EXPECT_EQ(figures.independent_reads, 1u);
    EXPECT_EQ(figures.bytes_written, 100u);
    EXPECT_EQ(figures.bytes_read, 100u);
  });
}

}  // namespace
}  // namespace pario::engine
