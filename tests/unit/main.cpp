// Runs the tests of a module. A test that runs for longer than its limit prints the stacks of all
// threads and aborts. The limit is 60 seconds, 240 under a sanitizer, times PARIO_TEST_PATIENCE
// (default 1).
#include <dirent.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr double kLimitSeconds = 240;
#else
constexpr double kLimitSeconds = 120;
#endif
std::atomic<int> threads_printed = 0;

int limit_signal() { return SIGRTMIN + 7; }
int stack_signal() { return SIGRTMIN + 8; }

void write_text(const char* text) {
  std::size_t length = 0;
  while (text[length] != '\0') ++length;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, length);
}

void print_own_stack(int /*signal*/) {
  std::array<void*, 64> frames{};
  const int depth = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  write_text("--- thread\n");
  ::backtrace_symbols_fd(frames.data(), depth, STDERR_FILENO);
  ++threads_printed;
}

/// Signals each thread in turn, so that their lines do not mix.
void print_all_stacks() {
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return;
  while (const dirent* task = ::readdir(tasks)) {
    const int thread = std::atoi(task->d_name);
    const int before = threads_printed;
    if (thread <= 0 || ::syscall(SYS_tgkill, ::getpid(), thread, stack_signal()) != 0) continue;
    for (int wait = 0; wait < 100 && threads_printed == before; ++wait) ::usleep(10'000);
  }
  ::closedir(tasks);
}

/// Runs in a signal handler of a process that is about to abort, so that a call that is not
/// async-signal-safe can at worst replace the abort by a deadlock, which ctest ends.
void end_overdue_test(int /*signal*/) {
  write_text("this test has exceeded its time limit; stacks of all threads:\n");
  print_all_stacks();
  ::signal(SIGABRT, SIG_DFL);
  std::abort();
}

/// Arms a timer for each test. Timers are not inherited by the processes that a test forks.
class TimeLimit : public testing::EmptyTestEventListener {
 public:
  TimeLimit() {
    std::array<void*, 1> frame{};
    ::backtrace(frame.data(), 1);  // loads its library now, because signal handlers must not
    ::signal(limit_signal(), end_overdue_test);
    ::signal(stack_signal(), print_own_stack);
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = limit_signal();
    ::timer_create(CLOCK_MONOTONIC, &event, &timer_);
    const char* patience = std::getenv("PARIO_TEST_PATIENCE");
    if (patience != nullptr) seconds_ *= std::atof(patience);
  }

  void OnTestStart(const testing::TestInfo& /*test*/) override { arm(seconds_); }
  void OnTestEnd(const testing::TestInfo& /*test*/) override { arm(0); }

 private:
  void arm(double seconds) {
    itimerspec spec{};
    spec.it_value.tv_sec = static_cast<time_t>(seconds);
    spec.it_value.tv_nsec =
        static_cast<long>((seconds - static_cast<double>(spec.it_value.tv_sec)) * 1e9);
    ::timer_settime(timer_, 0, &spec, nullptr);
  }

  timer_t timer_{};
  double seconds_ = kLimitSeconds;
};

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  testing::UnitTest::GetInstance()->listeners().Append(new TimeLimit);
  return RUN_ALL_TESTS();
}
