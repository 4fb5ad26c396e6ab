// The calls in progress in a log: nested, deep, left by longjmp, of ended threads and of a fork.

#include <sys/wait.h>

#include <csetjmp>
#include <string>
#include <thread>

#include "log_reader.hpp"
#include "tracing.hpp"

namespace pario::trace {
namespace {

class Progress : public Tracing {
 public:
  /// Returns the calls in progress in the only log, "function@start" or "function@start path".
  std::string shown_calls() const {
    std::string text;
    for (const CallRow& row : read_only_log(directory).in_progress) {
      if (row.start == 0) continue;
      text += (text.empty() ? "" : ", ") + std::to_string(row.function) + "@" +
              std::to_string(row.start);
      if ((row.flags & kNamed) != 0) text += " " + std::string(row.path);
    }
    return text;
  }
};

TEST_F(Progress, IsShownUntilTheCallReturns) {
  begin();
  EXPECT_EQ(shown_calls(), "");
  {
    const InProgress call({.function = kWriteId, .file = 7, .offset = 512, .length = 64}, 11);
    const CallRow row = read_only_log(directory).in_progress.at(0);
    EXPECT_EQ(row.start, 11u);
    EXPECT_EQ(row.function, kWriteId);
    EXPECT_EQ(row.file, 7u);
    EXPECT_EQ(row.offset, 512u);
    EXPECT_EQ(row.length, 64u);
    EXPECT_EQ(row.flags, 0u);
  }
  EXPECT_EQ(shown_calls(), "");
}

TEST_F(Progress, HasThePathOfAnOpening) {
  begin();
  const InProgress call({.function = kOpenId, .path = "/data/fifo"}, 5);
  EXPECT_EQ(shown_calls(), std::to_string(kOpenId) + "@5 /data/fifo");
}

TEST_F(Progress, CutsALongPath) {
  begin();
  const std::string path(1000, 'x');
  const InProgress call({.function = kOpenId, .path = path}, 5);
  EXPECT_EQ(shown_calls(), std::to_string(kOpenId) + "@5 " + path.substr(0, 223));
}

/// Makes `depth` nested calls, with the starts 1, 2, ..., and calls `inside` in the innermost.
template <class Inside>
void nest(std::uint64_t depth, Inside inside,
          std::uint64_t start = 1) {  // NOLINT(misc-no-recursion)
  if (start > depth) return inside();
  const InProgress call({.function = kWriteId}, start);
  nest(depth, inside, start + 1);
}

TEST_F(Progress, ShowsOutermostAndInnermostOfDeepCalls) {
  begin();
  const std::string write = std::to_string(kWriteId) + "@";
  nest(2, [&] { EXPECT_EQ(shown_calls(), write + "1, " + write + "2"); });
  nest(5, [&] { EXPECT_EQ(shown_calls(), write + "1, " + write + "2, " + write + "5"); });
  EXPECT_EQ(shown_calls(), "");
}

std::jmp_buf before_calls;

TEST_F(Progress, ForgetsCallsThatAreLeftByLongjmp) {
  begin();

  if (setjmp(before_calls) == 0) nest(3, [] { std::longjmp(before_calls, 1); });
  const InProgress call({.function = kReadId}, 9);
  EXPECT_EQ(shown_calls(), std::to_string(kReadId) + "@9");
}

TEST_F(Progress, EndsWithItsThread) {
  begin();
  std::thread([] {
    // Never destroyed, as after a cancellation.
    alignas(InProgress) static std::byte memory[sizeof(InProgress)];
    new (memory) InProgress({.function = kWriteId}, 3);
  }).join();
  EXPECT_EQ(shown_calls(), "");
}

std::size_t count_shown_rows(const std::filesystem::path& directory) {
  std::size_t rows = 0;
  for (const auto& path : logs_in(directory))
    for (const CallRow& row : read_log(path).in_progress) rows += row.start != 0;
  return rows;
}

TEST_F(Progress, StaysInTheLogOfTheParentAfterAFork) {
  begin();
  std::size_t rows = 0;
  pid_t child = -1;
  nest(2, [&] {
    child = fork();
    if (child == 0) return restart_after_fork();  // then both calls end in the child
    waitpid(child, nullptr, 0);
    rows = count_shown_rows(directory);
  });
  if (child == 0) _exit(0);
  EXPECT_EQ(rows, 2u);
}

}  // namespace
}  // namespace pario::trace
