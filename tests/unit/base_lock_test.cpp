// Locks of bytes of a file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "core/base/base.hpp"
#include "core/base/descriptor.hpp"

namespace pario::base {
namespace {

/// Two openings of a file without a name.
class ByteLocks : public testing::Test {
 protected:
  ByteLocks() {
    char name[] = "/tmp/pario-locks-XXXXXX";
    first = Descriptor(::mkstemp(name));
    second = Descriptor(::open(name, O_RDWR | O_CLOEXEC));
    ::unlink(name);
  }
  long lock_first(short type, std::uint64_t byte) const {
    return lock_byte(first.number(), type, byte, false);
  }
  long lock_second(short type, std::uint64_t byte) const {
    return lock_byte(second.number(), type, byte, false);
  }
  Descriptor first, second;
};

TEST_F(ByteLocks, ExcludeOtherOpeningsFromOneByte) {
  EXPECT_EQ(lock_first(F_WRLCK, 5), 0);
  EXPECT_EQ(lock_second(F_WRLCK, 5), -EAGAIN);
  EXPECT_EQ(lock_second(F_WRLCK, 4), 0);
  EXPECT_EQ(lock_second(F_WRLCK, 6), 0);
  EXPECT_EQ(lock_first(F_UNLCK, 5), 0);
  EXPECT_EQ(lock_second(F_WRLCK, 5), 0);
}

TEST_F(ByteLocks, OfReadersAreShared) {
  EXPECT_EQ(lock_first(F_RDLCK, 0), 0);
  EXPECT_EQ(lock_second(F_RDLCK, 0), 0);
  EXPECT_EQ(lock_first(F_WRLCK, 0), -EAGAIN);
}

std::atomic<int> signals{0};

TEST_F(ByteLocks, AreAwaitedAcrossInterruptions) {
  struct sigaction action{};
  action.sa_handler = [](int) { ++signals; };  // without SA_RESTART
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  ASSERT_EQ(lock_first(F_WRLCK, 0), 0);
  std::atomic<bool> is_locked{false};
  long result = -1;
  std::thread waiting([&] {
    result = lock_byte(second.number(), F_WRLCK, 0, true);
    is_locked = true;
    ::usleep(1);  // the thread sanitizer calls the handlers of earlier signals in here
  });
  for (int i = 0; i < 20; ++i) {
    ::pthread_kill(waiting.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_FALSE(is_locked);
  EXPECT_EQ(lock_first(F_UNLCK, 0), 0);
  waiting.join();
  EXPECT_EQ(result, 0);
  EXPECT_GT(signals, 0);
}

}  // namespace
}  // namespace pario::base
