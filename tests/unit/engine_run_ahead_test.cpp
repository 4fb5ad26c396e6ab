// Collective calls in which ranks do not wait for each other, and the order that they keep.
#include "parallel/engine/run_ahead.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "engine_support.hpp"
#include "pattern_model.hpp"

namespace pario::engine {
namespace {

constexpr int kTwo[] = {0, 0};
constexpr std::uint64_t kPiece = 100;
/// Calls 1, 2, 3, 4, 6 and 10 are meetings; the last one begins the series of calls 11 to 17.
constexpr int kBeforeSeries = 10;

base::Status write_at(SharedFile& file, std::uint64_t offset, char fill,
                      std::uint64_t bytes = kPiece) {
  std::vector<std::byte> buffer(bytes, static_cast<std::byte>(fill));
  return file
      .move_run(plan::Direction::write, base::Extent::at(offset, bytes), buffer.data(),
                With::together, "write_all")
      .status();
}

/// Moves the pieces of all ranks in rank order, by the shared pointer.
base::Status write_ordered(SharedFile& file, char fill) {
  const auto begin = file.pointer().order(kPiece, "write_ordered");
  return begin ? write_at(file, *begin, fill) : begin.status();
}

/// Pieces of 10 bytes, of all ranks in turn.
base::Status write_pieces(SharedFile& file, int rank, char fill) {
  std::vector<std::byte> buffer(kPiece, static_cast<std::byte>(fill));
  pattern::Access access = plain(buffer, 0);
  access.view = make_alternating_view(rank, 2, 10);
  return file.write(access, With::together, "write_all").status();
}

/// Makes calls until a series has begun, far behind the bytes that the tests look at.
void begin_series(SharedFile& file, int rank) {
  for (int call = 0; call < kBeforeSeries; ++call)
    EXPECT_OK(write_at(file, 100'000 + static_cast<std::uint64_t>(rank) * kPiece, 'x'));
}

/// Lets a thread wait for another one.
class Signal {
 public:
  void send() { sent_ = true; }
  void wait() const {
    while (!sent_) std::this_thread::yield();
  }

 private:
  std::atomic<bool> sent_{false};
};

std::string text_at(const std::string& path, std::size_t begin, std::size_t size) {
  return read_file(path).substr(begin, size);
}

TEST(RunAheadParts, AreThoseOutsideOfOtherExtents) {
  using Parts = std::vector<base::Extent>;
  EXPECT_EQ(parts_outside({10, 20}, {}), (Parts{{10, 20}}));
  EXPECT_EQ(parts_outside({10, 20}, {{0, 10}, {20, 30}}), (Parts{{10, 20}}));
  EXPECT_EQ(parts_outside({10, 20}, {{18, 30}, {0, 12}, {13, 14}, {13, 15}}),
            (Parts{{12, 13}, {15, 18}}));
  EXPECT_EQ(parts_outside({10, 20}, {{5, 30}}), Parts{});
}

TEST(RunAhead, RanksMeetOnceInOrderedCalls) {
  const Directory directory;
  const std::string path = directory / "ordered";
  with_file(kTwo, fresh(path), [](SharedFile& file, comm::Comm& ranks) {
    const char first = ranks.rank() == 0 ? 'a' : 'b';
    for (int call = 0; call < 20; ++call)
      EXPECT_OK(write_ordered(file, static_cast<char>(first + call % 2 * 2)));
    EXPECT_EQ(file.statistics().direct, 20u);
    EXPECT_EQ(file.statistics().ran_ahead, 20u - 7) << "other meetings in 1 to 4, 6, 10 and 18";
  });
  const std::string two = std::string(kPiece, 'a') + std::string(kPiece, 'b') +
                          std::string(kPiece, 'c') + std::string(kPiece, 'd');
  std::string all;
  for (int i = 0; i < 10; ++i) all += two;
  EXPECT_EQ(read_file(path), all);
}

TEST(RunAhead, MeetingsBecomeRare) {
  const Directory directory;
  with_file(kFour, fresh(directory / "nodes"), [](SharedFile& file, comm::Comm& ranks) {
    const auto offset = static_cast<std::uint64_t>(ranks.rank()) * kPiece;
    for (int call = 0; call < 5; ++call) EXPECT_OK(write_at(file, offset, 'a'));
    EXPECT_EQ(file.statistics().ran_ahead, 0u) << "ranks of several nodes";
  });
  with_file(kTwo, fresh(directory / "node"), [](SharedFile& file, comm::Comm& ranks) {
    const auto offset = static_cast<std::uint64_t>(ranks.rank()) * kPiece;
    for (int call = 0; call < 200; ++call) EXPECT_OK(write_at(file, offset, 'a'));
    EXPECT_EQ(file.statistics().direct, 200u);
    EXPECT_EQ(file.statistics().ran_ahead, 200u - 10) << "meetings 1 to 4, 6, 10, ..., 130";
    std::vector<std::byte> buffer(kPiece);
    EXPECT_OK(file.read(plain(buffer, offset), With::together, "read_all"));
    for (int call = 0; call < 256; ++call) EXPECT_OK(write_at(file, offset, 'b'));
    EXPECT_EQ(file.statistics().ran_ahead, 190u + 255) << "reads do not shorten series of writes";
  });
}

TEST(RunAhead, EveryCallMeetsWhereRanksMayNotRunAhead) {
  const auto count = [](const std::function<void(OpenRequest&)>& change, bool atomic) {
    const Directory directory;
    OpenRequest request = fresh(directory / "meets");
    change(request);
    std::atomic<std::uint64_t> without = 0;
    with_file(kTwo, request, [&](SharedFile& file, comm::Comm& ranks) {
      if (atomic) EXPECT_OK(file.set_atomic(true));
      begin_series(file, ranks.rank());
      without += file.statistics().ran_ahead;
    });
    return without.load();
  };
  EXPECT_NE(count([](OpenRequest&) {}, false), 0u);
  EXPECT_EQ(count([](OpenRequest&) {}, true), 0u);
  EXPECT_EQ(count([](auto& open) { open.hints.pario_run_ahead = hints::Choice::disable; }, false),
            0u);
  EXPECT_EQ(count([](auto& open) { open.hints.pario_verify = true; }, false), 0u);
  EXPECT_EQ(count([](auto& open) { open.hints.pario_check = true; }, false), 0u);
  EXPECT_EQ(count([](auto& open) { open.hints.pario_merge_collectives = 1 << 20; }, false), 0u);
}

/// Rank 1 makes the calls of the series when rank 0 has made all of its own.
void with_late_rank(const std::string& path, const std::function<void(SharedFile&)>& early,
                    const std::function<void(SharedFile&)>& late) {
  Signal signal;
  with_file(kTwo, fresh(path), [&](SharedFile& file, comm::Comm& ranks) {
    begin_series(file, ranks.rank());
    if (ranks.rank() == 0) {
      early(file);
      signal.send();
    } else {
      signal.wait();
      late(file);
    }
  });
}

TEST(RunAhead, ARankDoesNotWaitForALateOne) {
  const Directory directory;
  const auto write = [](SharedFile& file, std::uint64_t offset, char fill) {
    for (std::uint64_t call = 0; call < 7; ++call)
      EXPECT_OK(write_at(file, offset + call * kPiece, fill));
  };
  with_late_rank(
      directory / "late", [&](SharedFile& file) { write(file, 0, 'a'); },
      [&](SharedFile& file) { write(file, 700, 'b'); });
  EXPECT_EQ(text_at(directory / "late", 0, 1400), std::string(700, 'a') + std::string(700, 'b'));
}

TEST(RunAhead, ALateWriteLeavesOutTheBytesOfLaterCalls) {
  const Directory directory;
  with_late_rank(
      directory / "order",
      [](SharedFile& file) {
        EXPECT_OK(write_at(file, 1000, 'a'));
        EXPECT_OK(write_at(file, 40, 'a', 20));
        EXPECT_OK(write_at(file, 90, 'a', 20));
      },
      [](SharedFile& file) {
        EXPECT_OK(write_at(file, 0, 'b'));
        EXPECT_OK(write_at(file, 2000, 'b'));
        EXPECT_OK(write_at(file, 3000, 'b'));
      });
  EXPECT_EQ(text_at(directory / "order", 0, 110), std::string(40, 'b') + std::string(20, 'a') +
                                                      std::string(30, 'b') + std::string(20, 'a'));
}

TEST(RunAhead, StartedCallsBelongToTheSeries) {
  const Directory directory;
  const auto start = [](SharedFile& file, std::vector<std::byte>& buffer, std::uint64_t offset) {
    return file.start(plan::Direction::write, plain(buffer, offset), With::together, "iwrite_all");
  };
  with_late_rank(
      directory / "started",
      [&](SharedFile& file) {
        std::vector<std::byte> buffer(kPiece, std::byte{'a'});
        const auto operation = start(file, buffer, 0);
        EXPECT_TRUE(operation->is_done()) << "the other rank has not begun the call";
        EXPECT_OK(operation->result());
        EXPECT_OK(write_at(file, 40, 'a', 20));
      },
      [&](SharedFile& file) {
        std::vector<std::byte> buffer(kPiece, std::byte{'b'});
        const auto operation = start(file, buffer, 20);
        operation->wait();
        EXPECT_OK(operation->result());
        EXPECT_OK(write_at(file, 2000, 'b'));
        EXPECT_EQ(file.statistics().ran_ahead, 2u + 4) << "calls 5, 7, 8 and 9, and these two";
      });
  EXPECT_EQ(
      text_at(directory / "started", 0, 120),
      std::string(20, 'a') + std::string(20, 'b') + std::string(20, 'a') + std::string(60, 'b'));
}

TEST(RunAhead, ALateRankMayWritePiecesAround) {
  const Directory directory;
  with_late_rank(
      directory / "pieces",
      [](SharedFile& file) {
        EXPECT_OK(write_at(file, 1000, 'a'));
        EXPECT_OK(write_at(file, 15, 'a', 20));
      },
      [](SharedFile& file) {
        EXPECT_OK(write_pieces(file, 1, 'b'));  // [10, 20), [30, 40), ...
        EXPECT_OK(write_at(file, 2000, 'b'));
      });
  std::string expected(40, '\0');
  expected.replace(10, 5, "bbbbb").replace(15, 20, std::string(20, 'a')).replace(35, 5, "bbbbb");
  EXPECT_EQ(text_at(directory / "pieces", 0, 40), expected);
}

TEST(RunAhead, AWriterWaitsForAnOverlappingWriteOfAnEarlierCall) {
  struct alignas(64) Memory {
    std::array<std::byte, 16384> bytes = {};
  } memory;
  ASSERT_LE(RunAhead::memory_size(2), sizeof memory);
  Signal begun, waits;
  std::atomic<bool> finished = false;
  comm::run_as_threads(kTwo, [&](const std::shared_ptr<comm::Comm>& comm) {
    RunAhead mine(memory.bytes.data(), *comm);
    if (comm->rank() == 0) {
      mine.begin(1, {{0, 100}, 100, 1, 4, 1});
      begun.send();
      waits.wait();
      finished = true;
      mine.finish(1);
      return;
    }
    begun.wait();
    mine.begin(2, {{50, 60}, 10, 1, 2, 1});
    const comm::Patience patience{.interval_ns = 1000, .look = [&](std::uint64_t) {
                                    waits.send();
                                    return base::Status();
                                  }};
    EXPECT_FALSE(mine.must_wait(2, {100, 200}) || finished) << "no overlap";
    EXPECT_TRUE(mine.must_wait(2, {50, 60}));
    EXPECT_OK(mine.wait_for_earlier(2, {50, 60}, patience));
    EXPECT_TRUE(finished && mine.find_later(2, {50, 60}).empty());
  });
}

/// Extents of successive calls: ascending, anywhere, or first one and then the other.
std::vector<base::Extent> random_extents(pattern::Random& random, std::size_t count) {
  const std::uint64_t most = 1 + random.upto(30), ascending = random.upto(2);
  std::vector<base::Extent> extents(1);
  std::uint64_t begin = 0;
  while (extents.size() <= count) {
    const std::uint64_t length = random.one_in(10) ? 0 : 1 + random.upto(most);
    const bool ascends = ascending == 0 || (ascending == 1 && extents.size() < count / 2);
    begin = ascends ? begin + random.upto(most) : random.upto(2000);
    extents.push_back(base::Extent::at(begin, length));
    begin += length;
  }
  return extents;
}

/// Makes calls of two ranks, of which one is often ahead, and compares the later calls found.
void expect_all_later_calls(RunAhead& slow, RunAhead& fast, std::uint64_t seed) {
  constexpr std::size_t kCalls = 400;
  pattern::Random random(seed);
  const std::vector<base::Extent> own = random_extents(random, kCalls),
                                  other = random_extents(random, kCalls);
  std::size_t begun = 0;
  for (std::size_t number = 1; number <= kCalls; ++number) {
    for (const std::size_t until = number + random.upto(200); begun < std::min(until, kCalls);) {
      ++begun;
      fast.begin_run(begun, other[begun]);
      fast.finish(begun);
    }
    slow.begin_run(number, own[number]);
    std::vector<base::Extent> expected;
    for (std::size_t call = number + 1; call <= begun; ++call)
      if (!base::intersection(other[call], own[number]).empty()) expected.push_back(other[call]);
    ASSERT_EQ(slow.find_later(number, own[number]), expected) << "call " << number;
    slow.finish(number);
  }
}

TEST(RunAhead, FindsTheOverlapsWithAllLaterCalls) {
  struct alignas(64) Memory {
    std::array<std::byte, 16384> bytes = {};
  };
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Memory memory;
    std::atomic<RunAhead*> fast{nullptr};
    Signal made, done;
    comm::run_as_threads(kTwo, [&](const std::shared_ptr<comm::Comm>& comm) {
      RunAhead own(memory.bytes.data(), *comm);
      if (comm->rank() == 1) {
        fast = &own;
        made.send();
        return done.wait();
      }
      made.wait();
      expect_all_later_calls(own, *fast, seed);
      done.send();
    });
  }
}

TEST(RunAhead, CallsOfAnotherShapeMeetAgain) {
  const Directory directory;
  with_file(kTwo, fresh(directory / "shape"), [](SharedFile& file, comm::Comm& ranks) {
    begin_series(file, ranks.rank());
    EXPECT_OK(write_pieces(file, ranks.rank(), ranks.rank() == 0 ? 'a' : 'b'));
    EXPECT_EQ(file.statistics().through_windows, 1u);
    begin_series(file, ranks.rank());
    EXPECT_EQ(file.statistics().ran_ahead, 8u) << "calls 5 and 7 to 9, twice";
  });
  EXPECT_EQ(text_at(directory / "shape", 0, 40), "aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbb");
}

TEST(RunAhead, ReadsInASeriesOfWritesSeeTheBytesOfAllRanks) {
  const Directory directory;
  with_file(kTwo, fresh(directory / "reads"), [](SharedFile& file, comm::Comm& ranks) {
    for (char round = 'a'; round < 'h'; ++round) {
      begin_series(file, ranks.rank());
      const auto own = static_cast<std::uint64_t>(ranks.rank()) * kPiece;
      EXPECT_OK(write_at(file, own, round));
      std::vector<std::byte> read(kPiece);
      EXPECT_OK(file.read(plain(read, kPiece - own), With::together, "read_all"));
      EXPECT_EQ(read, std::vector<std::byte>(kPiece, static_cast<std::byte>(round)));
    }
  });
}

/// Reads in the same manner as write_at().
base::Result<char> read_at(SharedFile& file, std::uint64_t offset) {
  std::vector<std::byte> buffer(kPiece);
  const auto read = file.move_run(plan::Direction::read, base::Extent::at(offset, kPiece),
                                  buffer.data(), With::together, "read_all");
  if (!read) return read.error();
  return static_cast<char>(buffer[0]);
}

/// Makes calls until both directions have had series, far behind the bytes that the tests look at.
/// Another meeting comes 13 calls later.
void begin_series_of_both(SharedFile& file, int rank) {
  begin_series(file, rank);
  for (int call = 0; call < kBeforeSeries; ++call)
    EXPECT_TRUE(read_at(file, 100'000 + static_cast<std::uint64_t>(rank) * kPiece).ok());
}

TEST(RunAhead, CallsOfBothDirectionsDoWithoutMeetings) {
  const Directory directory;
  with_file(kTwo, fresh(directory / "both"), [](SharedFile& file, comm::Comm& ranks) {
    begin_series_of_both(file, ranks.rank());
    const std::uint64_t before = file.statistics().ran_ahead;
    const auto own = static_cast<std::uint64_t>(ranks.rank()) * kPiece;
    for (char fill : {'a', 'b'}) {
      EXPECT_OK(write_at(file, own, fill));
      const auto read = read_at(file, kPiece - own);
      EXPECT_TRUE(read.ok() && *read == fill) << "the bytes of the other rank";
    }
    EXPECT_EQ(file.statistics().ran_ahead, before + 3) << "a turn counts: the series has 7 calls";
  });
}

TEST(RunAhead, AReadWaitsForLateWritesBeforeIt) {
  const Directory directory;
  with_file(kTwo, fresh(directory / "late"), [](SharedFile& file, comm::Comm& ranks) {
    begin_series_of_both(file, ranks.rank());
    const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
    if (ranks.rank() == 1) sleep();
    EXPECT_OK(write_at(file, ranks.rank() == 0 ? 500 : 0, 'n'));
    const auto read = read_at(file, 0);
    EXPECT_TRUE(read.ok() && *read == 'n');
    if (ranks.rank() == 0) sleep();
    const auto again = read_at(file, 0);
    EXPECT_TRUE(again.ok() && *again == 'n') << "the write of the other rank comes later";
    EXPECT_OK(write_at(file, ranks.rank() == 1 ? 0 : 500, 'o'));
  });
}

/// Opens one file for each rank; the writes of rank 1 below 100 fail.
Opener failing_below_100(const comm::Comm& ranks) {
  const bool mine = ranks.rank() == 1;
  return [=](const file::OpenRequest& request) -> base::Result<std::unique_ptr<file::File>> {
    auto file = file::open(request);
    if (!file || !mine) return file;
    return file::make_faulty(std::move(*file), [](const std::string& name, base::Extent where) {
      const bool fails = name == "write" && where.begin < 100;
      return fails ? file::Fault{file::Fault::Kind::error, ENOSPC} : file::Fault{};
    });
  };
}

/// Rank 1 fails in a series, by `fail`. `next` is the next call that meets.
void expect_late_error(int number, const std::function<base::Status(SharedFile&)>& fail,
                       const std::function<base::Status(SharedFile&)>& next) {
  const Directory directory;
  comm::run_as_threads(kTwo, [&](const std::shared_ptr<comm::Comm>& ranks) {
    auto opened = SharedFile::open(ranks, fresh(directory / "error"), failing_below_100(*ranks));
    ASSERT_TRUE(opened.ok());
    SharedFile& file = **opened;
    begin_series(file, ranks->rank());
    if (ranks->rank() == 1)
      EXPECT_EQ(fail(file).error().number, number);
    else
      EXPECT_OK(write_at(file, 5000, 'a'));
    const base::Status told = next(file);
    ASSERT_FALSE(ranks->rank() == 0 && told.ok());
    if (ranks->rank() == 0) {
      EXPECT_EQ(told.error().number, number) << told.error().text();
      EXPECT_EQ(told.error().rank, 1);
    }
    EXPECT_OK(file.sync());
    EXPECT_OK(file.close());
  });
}

TEST(RunAhead, AnErrorReachesTheOtherRanksAtTheNextMeeting) {
  const auto fail = [](SharedFile& file) { return write_at(file, 0, 'b'); };
  expect_late_error(ENOSPC, fail, [](SharedFile& file) { return file.sync(); });
  expect_late_error(ENOSPC, fail, [](SharedFile& file) { return file.resize(100); });
  expect_late_error(ENOSPC, fail, [](SharedFile& file) {
    std::vector<std::byte> buffer(10);
    return file.read(plain(buffer, 0), With::together, "read_all").status();
  });
  expect_late_error(ENOSPC, fail, [](SharedFile& file) {
    for (int call = 0; call < 6; ++call) EXPECT_OK(write_at(file, 7000, 'c'));
    return write_at(file, 7000, 'c');  // the end of the series
  });
}

TEST(RunAhead, OnSeveralNodesAllRanksGetAnErrorInTheCallItself) {
  const Directory directory;
  constexpr int kNodes[] = {0, 1};
  OpenRequest request = fresh(directory / "nodes");
  request.hints.romio_cb_write = hints::Choice::disable;  // each rank writes its own bytes
  comm::run_as_threads(kNodes, [&](const std::shared_ptr<comm::Comm>& ranks) {
    auto opened = SharedFile::open(ranks, request, failing_below_100(*ranks));
    ASSERT_TRUE(opened.ok());
    SharedFile& file = **opened;
    begin_series(file, ranks->rank());
    const base::Status told = write_at(file, ranks->rank() == 1 ? 0 : 5000, 'b');
    ASSERT_FALSE(told.ok());
    EXPECT_EQ(told.error().number, ENOSPC) << told.error().text();
    EXPECT_EQ(told.error().rank, 1);
    EXPECT_OK(file.close());
  });
}

TEST(RunAhead, ARankThatCannotTakePartHoldsNobodyUp) {
  const auto sync = [](SharedFile& file) { return file.sync(); };
  const base::Error error{.number = EINVAL};
  expect_late_error(
      EINVAL,
      [&](SharedFile& file) -> base::Status {
        file.refuse(plan::Direction::write, error, "write_all");
        return error;
      },
      sync);
  expect_late_error(
      EINVAL,
      [&](SharedFile& file) -> base::Status {
        file.miss(plan::Direction::write, error, "write_all");
        return error;
      },
      sync);
}

TEST(RunAhead, ARankThatLeavesBecauseOfItsErrorExplainsItself) {
  const Directory directory;
  comm::run_as_threads(kTwo, [&](const std::shared_ptr<comm::Comm>& ranks) {
    auto file = SharedFile::open(ranks, fresh(directory / "leaves"), failing_below_100(*ranks));
    ASSERT_TRUE(file.ok());
    begin_series(**file, ranks->rank());
    base::Status status;
    if (ranks->rank() == 1) {
      EXPECT_FALSE(write_at(**file, 0, 'b').ok());
      status = (*file)->close();
    } else {
      for (int call = 0; call < 20 && status; ++call) status = write_at(**file, 5000, 'a');
    }
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().number, ENOSPC) << status.error().text();
  });
}

TEST(RunAhead, ARankThatTurnsDoesNotWaitForOneThatHasLeft) {
  const Directory directory;
  comm::run_as_threads(kTwo, [&](const std::shared_ptr<comm::Comm>& ranks) {
    auto file = SharedFile::open(ranks, fresh(directory / "turns"), failing_below_100(*ranks));
    ASSERT_TRUE(file.ok());
    begin_series_of_both(**file, ranks->rank());
    base::Status status;
    if (ranks->rank() == 1) {
      EXPECT_FALSE(write_at(**file, 0, 'b').ok());
      status = (*file)->close();
    } else {
      EXPECT_OK(write_at(**file, 5000, 'a'));
      EXPECT_OK(write_at(**file, 5000, 'a'));
      for (int call = 0; call < 20 && status; ++call) status = read_at(**file, 5000).status();
    }
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().number, ENOSPC) << status.error().text();
  });
}

TEST(RunAhead, ARankInACallOfAnotherKindIsFound) {
  const Directory directory;
  with_file(kTwo, fresh(directory / "kind"), [](SharedFile& file, comm::Comm& ranks) {
    begin_series(file, ranks.rank());
    base::Status status;
    if (ranks.rank() == 1)
      status = file.sync();
    else
      for (int call = 0; call < 20 && status; ++call) status = write_at(file, 5000, 'a');
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().text().find("sync"), std::string::npos) << status.error().text();
    EXPECT_OK(write_at(file, 5000, 'a'));
  });
}

TEST(RunAhead, ARankThatReadsWhileAnotherWritesIsFoundInTheNextMeeting) {
  const Directory directory;
  with_file(kTwo, fresh(directory / "directions"), [](SharedFile& file, comm::Comm& ranks) {
    begin_series_of_both(file, ranks.rank());
    EXPECT_OK(write_at(file, 5000, 'a'));
    EXPECT_OK(ranks.rank() == 0 ? write_at(file, 5000, 'a') : read_at(file, 5000).status());
    EXPECT_EQ(file.sync().error().number, EINVAL);
    EXPECT_OK(file.sync());
    EXPECT_OK(write_at(file, 5000, 'a'));
  });
}

TEST(RunAhead, ADeadRankIsNoticed) {
  const Directory directory;
  comm::run_as_threads(kTwo, [&](const std::shared_ptr<comm::Comm>& ranks) {
    auto file = SharedFile::open(ranks, fresh(directory / "dead"));
    ASSERT_TRUE(file.ok());
    begin_series(**file, ranks->rank());
    if (ranks->rank() == 1) return;
    base::Status status;
    for (int call = 0; call < 20 && status; ++call) status = write_at(**file, 5000, 'a');
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().number, ESRCH) << status.error().text();
    EXPECT_FALSE(write_at(**file, 5000, 'a').ok());
    EXPECT_FALSE((*file)->close().ok());
  });
}

/// One call of all ranks: extents in the file, which do not overlap in one call.
struct RandomCall {
  plan::Direction direction;
  std::vector<base::Extent> extents;  ///< by rank
  std::uint64_t piece;                ///< 0: runs; otherwise ranks alternate in pieces
};

constexpr std::uint64_t kSize = 2000;

/// A call of a program in which one call in `turns` has another direction than the one before, and
/// one in `shapes` has pieces.
RandomCall random_call(pattern::Random& random, std::size_t ranks, plan::Direction before,
                       std::uint64_t turns, std::uint64_t shapes) {
  RandomCall call{before, {}, 0};
  if (random.one_in(turns))
    call.direction =
        before == plan::Direction::read ? plan::Direction::write : plan::Direction::read;
  if (random.one_in(shapes)) call.piece = 1 + random.upto(20);
  std::uint64_t begin = random.upto(kSize / 2);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::uint64_t length = random.one_in(10) ? 0 : random.upto(kSize / 2 / ranks);
    call.extents.push_back(base::Extent::at(begin, length));
    begin += length;
  }
  std::rotate(call.extents.begin(),
              call.extents.begin() + static_cast<std::ptrdiff_t>(random.upto(ranks - 1)),
              call.extents.end());
  return call;
}

pattern::Access access_of(const RandomCall& call, int rank, std::vector<std::byte>& buffer) {
  const auto ranks = static_cast<int>(call.extents.size());
  const base::Extent extent = call.extents[static_cast<std::size_t>(rank)];
  buffer.resize(extent.length());
  pattern::Access access = plain(buffer, extent.begin);
  // Not all ranks alternate: the rank with the number of the piece does not.
  if (call.piece == 0 || static_cast<std::uint64_t>(rank) == call.piece) return access;
  access.position = 0;
  access.view = make_alternating_view(rank, ranks, call.piece);
  access.view.displacement += kSize;  // apart from the run of another rank
  return access;
}

void play_calls(std::uint64_t seed) {
  SCOPED_TRACE("PARIO_TEST_SEED=" + std::to_string(seed));
  pattern::Random random(seed);
  const std::vector<int> shape(2 + random.upto(2), 0);
  const std::uint64_t turns = 1 + random.upto(12), shapes = 15 + random.upto(200);
  std::vector<RandomCall> calls;
  for (plan::Direction before = plan::Direction::write; calls.size() < 200;
       before = calls.back().direction)
    calls.push_back(random_call(random, shape.size(), before, turns, shapes));
  const Directory directory;
  with_file(shape, fresh(directory / "calls"), [&](SharedFile& file, comm::Comm& ranks) {
    pattern::Random own(seed * 31 + static_cast<std::uint64_t>(ranks.rank()));
    std::vector<std::byte> model(8 * kSize), buffer;
    for (std::size_t number = 0; number < calls.size(); ++number) {
      const RandomCall& call = calls[number];
      const auto value = [&](int rank) {
        return static_cast<std::byte>(1 + (number * 7 + static_cast<std::size_t>(rank)) % 250);
      };
      if (own.one_in(8)) std::this_thread::sleep_for(std::chrono::microseconds(own.upto(300)));
      const pattern::Access access = access_of(call, ranks.rank(), buffer);
      const base::Extent run = call.extents[static_cast<std::size_t>(ranks.rank())];
      const bool moves_run = own.one_in(2) && access.view.contiguous() && !run.empty();
      const auto move = [&](const char* name) {
        if (moves_run)
          return file.move_run(call.direction, run, buffer.data(), With::together, name);
        return call.direction == plan::Direction::read ? file.read(access, With::together, name)
                                                       : file.write(access, With::together, name);
      };
      if (call.direction == plan::Direction::read) {
        const auto read = move("read_all");
        ASSERT_TRUE(read.ok()) << read.error().text();
        for (std::uint64_t i = 0; i < *read; ++i)
          ASSERT_EQ(buffer[i], model[access.view.offset_of(access.position + i)])
              << "call " << number << ", byte " << i;
        continue;
      }
      std::ranges::fill(buffer, value(ranks.rank()));
      EXPECT_OK(move("write_all"));
      for (int rank = 0; rank < ranks.size(); ++rank) {
        std::vector<std::byte> other;
        const pattern::Access its = access_of(call, rank, other);
        for (std::uint64_t i = 0; i < its.bytes; ++i)
          model[its.view.offset_of(its.position + i)] = value(rank);
      }
    }
    EXPECT_OK(file.sync());
    std::vector<std::byte> all(model.size());
    const auto read = file.read(plain(all, 0), With::together, "read_all");
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(all, model);
  });
}

TEST(RunAhead, TheFileIsThatOfOneCallAfterTheOther) {
  const std::uint64_t seed = pattern::first_seed(), cases = pattern::cases(30);
  for (std::uint64_t i = 0; i < cases && !HasFailure(); ++i) play_calls(seed + i);
}

}  // namespace
}  // namespace pario::engine
