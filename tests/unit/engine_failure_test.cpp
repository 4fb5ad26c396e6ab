#include <cerrno>

#include "engine_support.hpp"

namespace pario::engine {
namespace {

/// The offset of a rank's own bytes: ranks that write at the same offset would race.
std::uint64_t own(const comm::Comm& ranks) { return static_cast<std::uint64_t>(ranks.rank()) * 10; }

/// Opens one file per rank; that of rank `bad` fails `operation` with `number`.
Opener failing_on(int bad, const comm::Comm& ranks, std::string operation, int number) {
  const bool mine = ranks.rank() == bad;
  return [=](const file::OpenRequest& request) -> base::Result<std::unique_ptr<file::File>> {
    auto file = file::open(request);
    if (!file || !mine) return file;
    return file::make_faulty(std::move(*file), [=](const char* name, base::Extent) {
      return name == operation ? file::Fault{file::Fault::Kind::error, number} : file::Fault{};
    });
  };
}

struct Case {
  const char* name;
  hints::Choice buffering;
  const char* operation;
  plan::Direction direction;
};

class EngineFailure : public ::testing::TestWithParam<Case> {};

TEST_P(EngineFailure, ReachesAllRanks) {
  const Directory directory;
  const Case& given = GetParam();
  comm::run_as_threads(kFour, [&](std::shared_ptr<comm::Comm> ranks) {
    OpenRequest request = fresh(directory / "fails");
    request.hints.romio_cb_write = request.hints.romio_cb_read = given.buffering;
    request.hints.cb_buffer_size = 4096;
    request.hints.pario_writers = 4;
    request.hints.pario_run_ahead = hints::Choice::disable;
    // Any rank may move a window, so all fail if the access is buffered.
    const int bad = given.buffering == hints::Choice::enable ? ranks->rank() : 2;
    auto file = SharedFile::open(ranks, request, failing_on(bad, *ranks, given.operation, ENOSPC));
    ASSERT_TRUE(file.ok()) << file.error().text();
    EXPECT_OK((*file)->resize(100'000));
    std::vector<std::byte> buffer(20'000);
    pattern::Access access = plain(buffer, 0);
    access.view = make_alternating_view(ranks->rank(), 4, 100);
    const bool write = given.direction == plan::Direction::write;
    const auto moved = write ? (*file)->write(access, With::together, "write_all")
                             : (*file)->read(access, With::together, "read_all");
    ASSERT_FALSE(moved.ok());
    EXPECT_EQ(moved.error().number, ENOSPC) << moved.error().text();
    EXPECT_OK((*file)->close());
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, EngineFailure,
    ::testing::Values(Case{"direct_write", hints::Choice::disable, "write", plan::Direction::write},
                      Case{"direct_read", hints::Choice::disable, "read", plan::Direction::read},
                      Case{"window_write", hints::Choice::enable, "write", plan::Direction::write},
                      Case{"window_read", hints::Choice::enable, "read", plan::Direction::read}),
    [](const auto& given) { return given.param.name; });

TEST(EngineFailureAlone, NamesTheRank) {
  const Directory directory;
  comm::run_as_threads(kFour, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file =
        SharedFile::open(ranks, fresh(directory / "alone"), failing_on(1, *ranks, "write", EIO));
    ASSERT_TRUE(file.ok());
    std::vector<std::byte> buffer(100);
    const auto written = (*file)->write(plain(buffer, 0), With::alone, "write_at");
    EXPECT_EQ(written.ok(), ranks->rank() != 1);
    EXPECT_TRUE(written.ok() || written.error().rank == 1);
    EXPECT_OK((*file)->close());
  });
}

TEST(EngineFailure, OfClosingReachesAllRanksAndAllClose) {
  const Directory directory;
  comm::run_as_threads(kFour, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file =
        SharedFile::open(ranks, fresh(directory / "close"), failing_on(3, *ranks, "close", EDQUOT));
    ASSERT_TRUE(file.ok());
    const base::Status closed = (*file)->close();
    ASSERT_FALSE(closed.ok());
    EXPECT_EQ(closed.error().number, EDQUOT);
  });
}

TEST(EngineFailure, OfArgumentsOnOneRankReleasesTheOthers) {
  const Directory directory;
  with_file(kFour, fresh(directory / "refuse"), [](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> buffer(10);
    if (ranks.rank() == 2) {
      file.refuse(plan::Direction::write, {.number = EINVAL}, "write_all");
    } else {
      const auto written = file.write(plain(buffer, own(ranks)), With::together, "write_all");
      ASSERT_FALSE(written.ok());
      EXPECT_EQ(written.error().number, EINVAL);
      EXPECT_EQ(written.error().rank, 2);
    }
    EXPECT_OK(file.write(plain(buffer, own(ranks)), With::together, "write_all"));
  });
}

TEST(EngineFailure, OfOrderIsFound) {
  const Directory directory;
  with_file(kFour, fresh(directory / "mixed"), [](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> buffer(10);
    const bool odd = ranks.rank() == 3;
    const auto moved = odd ? file.read(plain(buffer, own(ranks)), With::together, "read_all")
                           : file.write(plain(buffer, own(ranks)), With::together, "write_all");
    ASSERT_FALSE(moved.ok());
    EXPECT_NE(moved.error().detail.find("rank 3"), std::string::npos) << moved.error().text();
  });
}

TEST(EngineFailure, OfOrderIsFoundByNameInCheckMode) {
  const Directory directory;
  OpenRequest request = fresh(directory / "check");
  request.hints.pario_check = true;
  with_file(kFour, request, [](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> buffer(10);
    EXPECT_FALSE(file.write(plain(buffer, own(ranks)), With::together,
                            ranks.rank() == 1 ? "write_all" : "write_at_all")
                     .ok());
    EXPECT_TRUE(file.write(plain(buffer, own(ranks)), With::together, "write_all").ok());
  });
}

/// A file whose bytes change when they are written.
class Forgetful {
 public:
  static Opener opener() {
    return [](const file::OpenRequest& request) -> base::Result<std::unique_ptr<file::File>> {
      static_cast<void>(request);
      return file::make_null("null");
    };
  }
};

TEST(EngineFailure, OfWrittenBytesIsFoundByReadingThemBack) {
  comm::run_as_threads(std::vector<int>{0, 0}, [&](std::shared_ptr<comm::Comm> ranks) {
    OpenRequest request = fresh("null");
    request.hints.pario_verify = true;
    auto file = SharedFile::open(ranks, request, Forgetful::opener());
    ASSERT_TRUE(file.ok());
    const auto begin = 1000 * static_cast<std::uint64_t>(ranks->rank() + 1);
    std::vector<std::byte> buffer = bytes_at(begin, 100);
    buffer[0] = std::byte{0};
    for (const With with : {With::alone, With::together}) {
      const auto written = (*file)->write(plain(buffer, begin), with, "write");
      ASSERT_FALSE(written.ok());
      EXPECT_EQ(written.error().where.begin, with == With::alone ? begin + 1 : 1001u)
          << "together: that of the lowest rank";
    }
    EXPECT_OK((*file)->close());
  });
}

/// Ranks by nodes, and the one that dies: a rank that leaves run_as_threads is dead for the others.
struct Loss {
  std::vector<int> node_of;
  int dies;
};

class EngineLoss : public ::testing::TestWithParam<Loss> {};
INSTANTIATE_TEST_SUITE_P(Shapes, EngineLoss,
                         ::testing::Values(Loss{{0, 0, 0}, 1}, Loss{{0, 0, 0}, 0},
                                           Loss{{0, 0, 1, 1}, 3}, Loss{{0, 0, 1, 1}, 2},
                                           Loss{{0, 0, 1, 1}, 0}, Loss{{0, 1, 2, 2}, 3},
                                           Loss{{0, 1, 2, 2}, 2}, Loss{{0, 1, 0, 2, 1}, 1}),
                         [](const auto& given) { return "case_" + std::to_string(given.index); });

/// All ranks but one make `call` until it fails; the one makes it three times and dies. Then all
/// others get an error that names it, from this call and every later one.
void expect_errors_naming_rank(const Loss& loss, const hints::Choice buffering,
                               const std::function<base::Status(SharedFile&, comm::Comm&)>& call) {
  const Directory directory;
  OpenRequest request = fresh(directory / "loss");
  request.hints.romio_cb_write = request.hints.romio_cb_read = buffering;
  comm::run_as_threads(loss.node_of, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file = SharedFile::open(ranks, request);
    ASSERT_TRUE(file.ok());
    const bool dies = ranks->rank() == loss.dies;
    base::Status status;
    for (int turn = 0; status.ok() && !(dies && turn == 3); ++turn) status = call(**file, *ranks);
    if (dies) return;
    EXPECT_EQ(status.error().number, ESRCH) << status.error().text();
    EXPECT_NE(status.error().detail.find("rank " + std::to_string(loss.dies) + " ("),
              std::string::npos)
        << status.error().text();
    EXPECT_EQ(status.error().path, request.path);
    EXPECT_NE(std::string(status.error().operation), "");
    EXPECT_FALSE(call(**file, *ranks).ok());
    EXPECT_FALSE((*file)->close().ok());
  });
}

base::Status status_of(const base::Result<std::uint64_t>& result) { return result.status(); }

TEST_P(EngineLoss, InCallsThroughWindowsReachesAllRanks) {
  expect_errors_naming_rank(GetParam(), hints::Choice::enable,
                            [](SharedFile& file, comm::Comm& ranks) {
                              std::vector<std::byte> buffer(50'000);
                              pattern::Access access = plain(buffer, 0);
                              access.view = make_alternating_view(ranks.rank(), ranks.size(), 100);
                              return status_of(file.write(access, With::together, "write_all"));
                            });
}

TEST_P(EngineLoss, InReadsReachesAllRanks) {
  expect_errors_naming_rank(GetParam(), hints::Choice::enable,
                            [](SharedFile& file, comm::Comm& ranks) {
                              std::vector<std::byte> buffer(50'000);
                              pattern::Access access = plain(buffer, 0);
                              access.view = make_alternating_view(ranks.rank(), ranks.size(), 100);
                              return status_of(file.read(access, With::together, "read_all"));
                            });
}

TEST_P(EngineLoss, InCallsWithoutExchangeReachesAllRanks) {
  expect_errors_naming_rank(
      GetParam(), hints::Choice::disable, [](SharedFile& file, comm::Comm& ranks) {
        std::vector<std::byte> buffer(10);
        return status_of(file.write(plain(buffer, own(ranks)), With::together, "write_all"));
      });
}

TEST_P(EngineLoss, InNonBlockingCallsReachesAllRanks) {
  expect_errors_naming_rank(
      GetParam(), hints::Choice::enable, [](SharedFile& file, comm::Comm& ranks) {
        std::vector<std::byte> buffer(10);
        const auto started = file.start(plan::Direction::write, plain(buffer, own(ranks)),
                                        With::together, "iwrite_all");
        started->wait();
        return status_of(started->result());
      });
}

TEST_P(EngineLoss, InCallsWithoutDataReachesAllRanks) {
  expect_errors_naming_rank(GetParam(), hints::Choice::enable,
                            [](SharedFile& file, comm::Comm&) { return file.sync(); });
  expect_errors_naming_rank(GetParam(), hints::Choice::enable, [](SharedFile& file, comm::Comm&) {
    return status_of(file.pointer().order(10, "write_ordered"));
  });
  expect_errors_naming_rank(GetParam(), hints::Choice::enable, [](SharedFile& file, comm::Comm&) {
    return file.set_hints(file.hints());
  });
  expect_errors_naming_rank(GetParam(), hints::Choice::enable,
                            [](SharedFile& file, comm::Comm&) { return file.set_atomic(true); });
}

TEST_P(EngineLoss, WhileOpeningReachesAllRanks) {
  const Directory directory;
  comm::run_as_threads(GetParam().node_of, [&](const std::shared_ptr<comm::Comm>& ranks) {
    if (ranks->rank() == GetParam().dies) return;
    const auto file = SharedFile::open(ranks, fresh(directory / "open"));
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().number, ESRCH) << file.error().text();
  });
}

TEST(EngineFailure, OfAWholeNodeEndsThePatienceOfTheOthers) {
  const Directory directory;
  OpenRequest request = fresh(directory / "node");
  request.hints.pario_patience = std::chrono::seconds(3);  // also for the opening
  comm::run_as_threads(std::vector<int>{0, 0, 1, 1}, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file = SharedFile::open(ranks, request);
    ASSERT_TRUE(file.ok());
    EXPECT_OK((*file)->agree(0, {}, "agree"));
    if (ranks->node() == 1) return;
    std::vector<std::byte> buffer(10);
    const auto written = (*file)->write(plain(buffer, own(*ranks)), With::together, "write_at_all");
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().number, ETIMEDOUT) << written.error().text();
    EXPECT_FALSE((*file)->close().ok());
  });
}

}  // namespace
}  // namespace pario::engine
