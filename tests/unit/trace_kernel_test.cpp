// The kernel's counters in the process row, and the parts of its texts.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/trace/kernel.hpp"
#include "log_reader.hpp"
#include "tracing.hpp"

namespace pario::trace {
namespace {

using Kernel = Tracing;

constexpr std::size_t kSize = 3 << 20;
char data[kSize];
constexpr double kText = 1024;  // the last text of /proc/self/io counts after it was read

/// Reads and writes kSize bytes that the tracer does not see.
void move_bytes() {
  const long zero = syscall(SYS_openat, AT_FDCWD, "/dev/zero", O_RDONLY);
  const long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_WRONLY);
  EXPECT_EQ(syscall(SYS_read, zero, data, kSize), static_cast<long>(kSize));
  EXPECT_EQ(syscall(SYS_write, null, data, kSize), static_cast<long>(kSize));
  syscall(SYS_close, zero);
  syscall(SYS_close, null);
}

/// Counts calls until the counters have been read again, which happens later where reading them
/// takes long.
void count_until_update(Record* record) {
  const std::uint64_t before = process().cpu_user_ns + process().cpu_system_ns;
  for (int i = 0; i < 10'000; ++i) {
    usleep(1000);
    count(record, write_call(0, 1));
    if (process().cpu_user_ns + process().cpu_system_ns != before) return;
  }
}

/// The program's bytes since the tracer's start.
double bytes_read(const Process& row) {
  return static_cast<double>(row.kernel_read - 1 - row.kernel_read_before) -
         static_cast<double>(row.tracer_bytes_read);
}
std::uint64_t bytes_written(const Process& row) {
  return row.kernel_written - 1 - row.kernel_written_before - row.tracer_bytes_written;
}

TEST_F(Kernel, CountersAreThoseOfTheProgramWithoutTheTracersOwn) {
  begin();
  Record* record = record_of("/data/out");
  move_bytes();
  for (std::uint64_t i = 0; i < 50'000; ++i) count(record, write_call(i, 1));  // chunks of events
  finish(1, 0);
  const Process row = read_only_log(directory).process;
  EXPECT_NEAR(bytes_read(row), kSize, kText);
  EXPECT_EQ(bytes_written(row), kSize);
  EXPECT_GT(row.tracer_bytes_written, row.event_bytes / 2);
  EXPECT_EQ(row.memory, static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * 4096);
}

TEST_F(Kernel, CountersOfAKilledProcessAreThoseOfItsLastAnchor) {
  in_child([&] {
    begin();
    Record* record = record_of("/data/out");
    move_bytes();
    count_until_update(record);
    raise(SIGKILL);
  });
  const Process row = read_only_log(directory).process;
  EXPECT_NEAR(bytes_read(row), kSize, kText);
  EXPECT_EQ(bytes_written(row), kSize);
  EXPECT_EQ(row.end, 0u);
}

TEST_F(Kernel, DelaysOfEndedThreadsRemain) {
  begin();
  Record* record = record_of("/data/out");
  std::atomic<bool> ended = false;
  const auto spin = [&ended] {
    while (!ended) {
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i) threads.emplace_back(spin);
  while (process().run_queue_delay < 10'000'000) count_until_update(record);
  ended = true;
  for (auto& thread : threads) thread.join();
  const std::uint64_t during = process().run_queue_delay;
  count_until_update(record);
  EXPECT_GE(process().run_queue_delay, during);
}

constexpr std::uint64_t kBurnt = 100'000'000;

std::uint64_t processor_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void burn() {
  const std::uint64_t end = processor_time() + kBurnt;
  while (processor_time() < end) {
  }
}

/// A process may end twice: by its handlers of exit, and by the destructors of libraries.
TEST_F(Kernel, WorkAtTheEndIsNotThatOfTheProgram) {
  const std::uint64_t start = processor_time();
  begin({.at_end = burn});
  finish(1, 0);
  burn();  // a destructor of the program
  finish(1, 0);
  const std::uint64_t all = processor_time() - start;
  const Process row = read_only_log(directory).process;
  const std::uint64_t used = row.cpu_user_ns + row.cpu_system_ns;
  EXPECT_GT(used, kBurnt * 9 / 10);
  EXPECT_LE(used, all - 2 * kBurnt * 9 / 10);
}

TEST_F(Kernel, WorkOnFirstCallsIsNotThatOfTheProgram) {
  const std::uint64_t start = processor_time();
  begin();
  {
    const FirstCall call;
    burn();
  }
  burn();
  finish(1, 0);
  const std::uint64_t all = processor_time() - start;
  const Process row = read_only_log(directory).process;
  const std::uint64_t used = row.cpu_user_ns + row.cpu_system_ns;
  EXPECT_GT(used, kBurnt * 9 / 10);
  EXPECT_LE(used, all - kBurnt * 9 / 10);
}

TEST_F(Kernel, ReadsOnPipesAreCountedApart) {
  begin();
  count_untraced(Op::read, 100);
  count_untraced(Op::read, -1);
  count_untraced(Op::write, 7);
  EXPECT_EQ(process().untraced_reads, 2u);
  EXPECT_EQ(process().untraced_bytes_read, 100u);
  EXPECT_EQ(process().untraced_writes, 1u);
  EXPECT_EQ(process().untraced_bytes_written, 7u);
}

TEST(KernelTexts, AreReadByTheirWords) {
  EXPECT_EQ(number_after("rchar: 12\nwchar: 34\n", "wchar: "), 34u);
  EXPECT_EQ(number_after("rchar: 12\n", "syscr: "), 0u);
  EXPECT_EQ(word_of("  17 4711\n3", 1), "4711");
  EXPECT_EQ(word_of("17", 1), "");
}

TEST(KernelTexts, DelayOfDevicesIsFieldFortyTwo) {
  std::string stat = "7 (a) b)";
  for (int field = 3; field <= 52; ++field) stat += " " + std::to_string(field * 10);
  EXPECT_EQ(block_io_ticks(stat), 420u);
  EXPECT_EQ(block_io_ticks(""), 0u);
}

}  // namespace
}  // namespace pario::trace
