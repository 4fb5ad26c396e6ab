// The contents of a log after a normal end, a fork, a kill, a full disk.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <thread>
#include <vector>

#include "log_reader.hpp"
#include "tracing.hpp"

namespace pario::trace {
namespace {

using Log = Tracing;

TEST_F(Log, HoldsWhatWasCounted) {
  begin();
  Record* record = record_of("/data/out");
  count(record, call(kOpenId, kUnknownOffset, 0, 3));
  count(record, write_call(0, 512));
  finish(1, 7);
  const ReadLog log = read_only_log(directory);
  EXPECT_EQ(log.record("/data/out").bytes_written, 512u);
  EXPECT_EQ(log.record("/data/out").opens, 1u);
  EXPECT_EQ(log.calls.at(kWriteId), 1u);
  ASSERT_EQ(log.events.size(), 2u);
  EXPECT_EQ(log.events[1].function, kWriteId);
  EXPECT_EQ(log.events[1].length, 512u);
  EXPECT_EQ(log.events[1].file, index_of(record));
  EXPECT_EQ(log.process.end_kind, 1u);
  EXPECT_EQ(log.process.end_code, 7u);
  EXPECT_EQ(log.process.pid, static_cast<std::uint64_t>(getpid()));
  EXPECT_GE(log.process.end, log.events[1].start);
  EXPECT_EQ(log.process.lost, 0u);
  EXPECT_EQ(log.pages_passed, 0u);
}

TEST_F(Log, KeepsTheStatusThatTheParentSees) {
  begin();
  constexpr std::pair<int, std::uint64_t> kStatuses[] = {{0, 0}, {255, 255}, {256, 0}, {-1, 255}};
  for (const auto& [given, kept] : kStatuses) {
    finish(1, given);
    EXPECT_EQ(read_only_log(directory).process.end_code, kept) << given;
  }
}

TEST_F(Log, DescribesItsRows) {
  begin();
  const ReadLog log = read_only_log(directory);
  EXPECT_NE(log.schema.find(R"("record":[["path","id"],["path_hash","id"])"), std::string::npos);
  EXPECT_NE(log.schema.find(R"({"id":2,"name":"write","category":"posix","op":"write"})"),
            std::string::npos);
  constexpr auto kLayers =
      R"("layers":["posix","stdio","mpiio","hdf5","netcdf","pnetcdf","adios2"])";
  EXPECT_NE(log.schema.find(kLayers), std::string::npos);
}

TEST_F(Log, SaysWhichProcessItIsOf) {
  setenv("SLURM_JOB_ID", "4711", 1);
  setenv("UNRELATED", "secret", 1);
  begin();
  const ReadLog log = read_only_log(directory);
  EXPECT_EQ(log.notes_with(R"("note":"process")"), 1u);
  EXPECT_EQ(log.notes_with(R"("SLURM_JOB_ID":"4711")"), 1u);
  EXPECT_EQ(log.notes_with("secret"), 0u);
}

TEST_F(Log, GoesOnAfterFinish) {
  begin();
  Record* record = record_of("/data/out");
  count(record, write_call(0, 1));
  finish(1, 0);
  count(record, write_call(1, 1));
  finish(1, 0);
  const ReadLog log = read_only_log(directory);
  EXPECT_EQ(log.record("/data/out").writes, 2u);
  EXPECT_EQ(log.events.size(), 2u);
  EXPECT_EQ(log.tail_events, 0u);
}

TEST_F(Log, GivesTheRoomOfItsTailBackAtTheEnd) {
  begin();
  Record* record = record_of("/data/out");
  for (std::uint64_t i = 0; i < 5000; ++i) count(record, write_call(i, 1));
  finish(1, 0);
  for (std::uint64_t i = 0; i < 500; ++i) count(record, write_call(i, 1));
  const ReadLog log = read_only_log(directory);
  EXPECT_EQ(log.events.size(), 5500u);
  EXPECT_EQ(log.process.events_lost, 0u);
  struct stat status{};
  stat(logs_in(directory).at(0).c_str(), &status);
  EXPECT_LT(status.st_blocks * 512, status.st_size - (300 << 10));
}

TEST_F(Log, OfAKilledProcessHasEverythingCounted) {
  const int status = in_child([&] {
    begin();
    Record* record = record_of("/data/out");
    for (std::uint64_t i = 0; i < 10000; ++i) count(record, write_call(i * 8, 8));
    note(R"({"note":"test"})");
    raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  const ReadLog log = read_only_log(directory);
  EXPECT_EQ(log.record("/data/out").writes, 10000u);
  EXPECT_EQ(log.events.size(), 10000u);
  EXPECT_EQ(log.chunks, 1u);
  EXPECT_EQ(log.notes_with(R"("note":"test")"), 1u);
  EXPECT_EQ(log.process.end_kind, 0u);
  EXPECT_EQ(log.process.end, 0u);
}

TEST_F(Log, OfAForkedChildBeginsAtZeroAndLeavesTheParentsAlone) {
  begin();
  Record* record = record_of("/data/out");
  count(record, write_call(0, 100));
  in_child([&] {
    restart_after_fork();
    Record* own = renew(record);
    count(own, write_call(0, 1));
    finish(2, 0);
  });
  count(record, write_call(100, 100));
  finish(1, 0);
  const auto logs = logs_in(directory);
  ASSERT_EQ(logs.size(), 2u);
  const bool first_is_parent =
      read_log(logs[0]).process.pid == static_cast<std::uint64_t>(getpid());
  const ReadLog parent = read_log(logs[first_is_parent ? 0 : 1]),
                child = read_log(logs[first_is_parent ? 1 : 0]);
  EXPECT_EQ(parent.record("/data/out").bytes_written, 200u);
  EXPECT_EQ(parent.events.size(), 2u);
  EXPECT_EQ(child.record("/data/out").bytes_written, 1u);
  EXPECT_EQ(child.events.size(), 1u);
  EXPECT_EQ(child.process.parent_image, 1u);
  EXPECT_EQ(child.process.ppid, static_cast<std::uint64_t>(getpid()));
}

TEST_F(Log, OfAForkAmongThreadsThatCountStaysWhole) {
  begin();
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; !stop; ++i)
        count(record_of("/data/" + std::to_string(t) + "/" + std::to_string(i % 1000)),
              write_call(0, 1));
    });
  for (int i = 0; i < 5; ++i) {
    const int status = in_child([&] {
      restart_after_fork();
      count(record_of("/child"), write_call(0, 1));
      finish(2, 0);
    });
    EXPECT_EQ(status, 0);
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  finish(1, 0);
  int children = 0;
  for (const auto& file : logs_in(directory)) {
    const ReadLog log = read_log(file);
    if (log.process.parent_image == 0) continue;
    ++children;
    EXPECT_EQ(log.record("/child").writes, 1u);
  }
  EXPECT_EQ(children, 5);
}

TEST_F(Log, SurvivesTheLossOfItsDescriptor) {
  begin();
  Record* record = record_of("/data/out");
  const std::string victim = directory + "/victim";
  const int number = descriptor();
  ASSERT_GE(number, 900);
  const int other = open(victim.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(dup2(other, number), number);
  for (std::uint64_t i = 0; i < 20000; ++i) count(record, write_call(i, 1));
  finish(1, 0);
  struct stat status{};
  stat(victim.c_str(), &status);
  EXPECT_EQ(status.st_size, 0) << "the program's file was written to";
  EXPECT_EQ(read_only_log(directory).events.size(), 20000u);
  close(other);
  close(number);
}

TEST_F(Log, IsOffWithoutADirectoryAndLeavesNothingWhenItCannotStart) {
  in_child([&] {
    start({.directory = "/dev/null/no", .messages = false}, kFunctions);
    EXPECT_FALSE(on());
    EXPECT_EQ(find_record(Layer::posix, "/x", nullptr, nullptr), nullptr);
    count(nullptr, write_call(0, 1));
    finish(1, 0);
    rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    start({.directory = directory.c_str(), .messages = false}, kFunctions);
    EXPECT_FALSE(on());
    if (testing::Test::HasFailure()) _exit(1);
  });
  EXPECT_TRUE(logs_in(directory).empty());
}

/// Counts 3,000 files and 50,000 events, with too little memory for them.
void fill_the_log() {
  Record* record = record_of("/data/first");
  for (std::uint64_t i = 0; i < 3000; ++i)
    count(record_of("/data/" + std::to_string(i)), write_call(i * i * 977, 1));
  for (std::uint64_t i = 0; i < 50000; ++i) count(record, write_call(i * i * 977, i));
  finish(1, 0);
}

std::uint64_t all_writes(const ReadLog& log) {
  std::uint64_t sum = 0;
  for (const Record& record : log.records) sum += record.writes;
  return sum;
}

TEST_F(Log, OnAFullDiskCountsOnAndNeverHarmsTheProgram) {
  if (mount("none", directory.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "needs root";
  const int status = in_child([&] {
    begin();
    fill_the_log();
  });
  const std::string copy = directory + ".plog";
  std::filesystem::copy_file(logs_in(directory).at(0), copy);
  umount(directory.c_str());
  const ReadLog log = read_log(copy);
  std::filesystem::remove(copy);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(all_writes(log), 53000u);
  EXPECT_EQ(log.process.lost, 0u);
  EXPECT_EQ(log.events.size() + log.process.events_lost, 53000u);
  EXPECT_EQ(log.notes_with("\"message\""), 1u);
}

TEST_F(Log, UnderAFileSizeLimitCountsOnAndRaisesNoSignal) {
  const int status = in_child([&] {
    rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    begin();
    fill_the_log();
  });
  EXPECT_EQ(status, 0);
  const ReadLog log = read_only_log(directory);
  EXPECT_EQ(all_writes(log), 53000u);
  EXPECT_EQ(log.events.size() + log.process.events_lost, 53000u);
}

TEST_F(Log, KeepsNotesOfThreadsWhole) {
  begin();
  std::vector<std::thread> threads;
  const std::string long_text(300, 'x');
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) note(R"({"note":"test","text":")" + long_text + "\"}");
    });
  for (auto& thread : threads) thread.join();
  note(R"({"note":"test","text":")" + std::string(100000, 'y') + "\"}");
  const ReadLog log = read_only_log(directory);
  EXPECT_EQ(log.notes_with(long_text + "\"}"), 800u);
  EXPECT_EQ(log.notes_with("yyy"), 1u);
  for (const auto& line : log.notes) EXPECT_TRUE(line.front() == '{' && line.back() == '}');
}

TEST_F(Log, LosesANoteThatIsTooLongAndSaysSo) {
  begin();
  note(std::string((256 << 10) + 1, 'x'));
  EXPECT_EQ(process().lost, 1u);
}

TEST_F(Log, CarriesMessages) {
  begin();
  message("something \"odd\"\n");
  EXPECT_EQ(
      read_only_log(directory).notes_with(R"({"note":"message","text":"something \"odd\"\u000a"})"),
      1u);
}

TEST_F(Log, EstimatesTheRateOfItsTicks) {
  begin();
  Record* record = record_of("/x");
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  count(record, write_call(0, 1));
  finish(1, 0);
  const Process& row = read_only_log(directory).process;
  const double seconds = static_cast<double>(row.anchor1_mono_ns - row.anchor0_mono_ns) / 1e9;
  EXPECT_GE(seconds, 0.25);
  EXPECT_NEAR(static_cast<double>(row.anchor1_ticks - row.anchor0_ticks) /
                  static_cast<double>(row.ticks_per_second),
              seconds, 1e-6 * seconds);
}

}  // namespace
}  // namespace pario::trace
