// Leaders that watch each other: processes on this host, reached by its own addresses.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "core/base/base.hpp"
#include "core/comm/lifelines.hpp"

namespace pario::comm {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

/// A leader in another process, number 1 of two.
class Other {
 public:
  /// `leaves`: it says goodbye at once.
  explicit Other(bool leaves = false) {
    if (::pipe(to_) != 0 || ::pipe(from_) != 0) return;
    process_ = ::fork();
    if (process_ == 0) live(leaves);
    EXPECT_EQ(::read(from_[0], &address_, sizeof address_), sizeof address_);
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  ~Other() {
    kill(SIGKILL);
    for (const int end : {to_[0], to_[1], from_[0], from_[1]}) ::close(end);
  }
  const ListenAddress& address() const { return address_; }
  void meet(Lifelines& mine) const {
    const ListenAddress address = mine.address();
    EXPECT_EQ(::write(to_[1], &address, sizeof address), sizeof address);
    mine.connect(0, {address, address_});
  }
  void kill(int signal) {
    if (process_ <= 0) return;
    ::kill(process_, signal);
    if (signal == SIGKILL) wait();
  }
  void wait() { ::waitpid(std::exchange(process_, 0), nullptr, 0); }

 private:
  [[noreturn]] void live(bool leaves) const {
    {
      Lifelines lines;
      ListenAddress other;
      if (::write(from_[1], &lines.address(), sizeof(ListenAddress)) != sizeof(ListenAddress) ||
          ::read(to_[0], &other, sizeof other) != sizeof other)
        ::_exit(1);
      lines.connect(1, {other, lines.address()});
      if (!leaves) ::pause();
    }
    ::_exit(0);
  }

  int to_[2] = {-1, -1}, from_[2] = {-1, -1};
  pid_t process_ = -1;
  ListenAddress address_;
};

std::optional<Lifelines::Loss> lost_within(Lifelines& lines, std::uint64_t duration_ns,
                                           std::uint64_t silence_ns = 0) {
  const std::uint64_t begin = base::monotonic_ns();
  do {
    if (auto loss = lines.find_loss(silence_ns)) return loss;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  } while (base::monotonic_ns() - begin < duration_ns);
  return {};
}

TEST(Lifelines, AProcessThatEndsIsMissed) {
  Other other;
  Lifelines mine;
  other.meet(mine);
  EXPECT_FALSE(mine.find_loss(0));
  other.kill(SIGKILL);
  const auto loss = lost_within(mine, 120 * kSecond);
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->leader, 1u);
  EXPECT_FALSE(loss->silent);
  EXPECT_TRUE(mine.find_loss(0));
}

TEST(Lifelines, AProcessThatTookLeaveIsNotMissed) {
  Other other(true);
  Lifelines mine;
  other.meet(mine);
  other.wait();
  EXPECT_FALSE(lost_within(mine, kSecond / 2, 1));
}

/// The kernel answers for a stopped process. The test lasts longer than the silence after which the
/// kernels send keep-alives.
TEST(Lifelines, AProcessThatIsStoppedIsNotMissed) {
  Other other;
  Lifelines mine;
  other.meet(mine);
  other.kill(SIGSTOP);
  EXPECT_FALSE(lost_within(mine, 8 * kSecond, 5 * kSecond));
  other.kill(SIGKILL);
  EXPECT_TRUE(lost_within(mine, 120 * kSecond));
}

TEST(Lifelines, WhoNeverCameIsNotMissed) {
  Lifelines mine;
  ListenAddress nobody = mine.address();
  nobody.token ^= 1, nobody.port = htons(1);
  mine.connect(0, {mine.address(), nobody});
  EXPECT_FALSE(lost_within(mine, kSecond / 2, 1));
}

TEST(Lifelines, AStrangerIsNotTakenForALeader) {
  Lifelines mine, other;
  const ListenAddress own = mine.address();
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_port = own.port,
  address.sin_addr.s_addr = own.addresses[0];
  ASSERT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::write(socket, "GET / HTTP/1.1\r\n\r\n", 18), 18);
  mine.connect(1, {other.address(), own});
  ::close(socket);
  EXPECT_FALSE(lost_within(mine, kSecond / 2, 1));
}

TEST(Lifelines, WhoWasStoppedHimselfHasToLookAgainForAWhile) {
  LookPeriod attention;
  EXPECT_EQ(attention.look(100 * kSecond), 0u);
  EXPECT_EQ(attention.look(101 * kSecond), kSecond);
  EXPECT_EQ(attention.look(102 * kSecond), 2 * kSecond);
  EXPECT_EQ(attention.look(109 * kSecond), 0u);
  EXPECT_EQ(attention.look(110 * kSecond), kSecond);
}

std::size_t neighbours_of(std::size_t one, std::size_t count) {
  std::size_t found = 0;
  for (std::size_t other = 0; other < count; ++other)
    found += other != one && are_neighbours(one, other, count);
  return found;
}

TEST(Lifelines, FewLeadersAllKnowEachOtherAndManyHaveFewNeighbours) {
  for (std::size_t count = 2; count <= 5; ++count) EXPECT_EQ(neighbours_of(1, count), count - 1);
  EXPECT_EQ(neighbours_of(0, 8), 5u);
  EXPECT_EQ(neighbours_of(17, 1000), 20u);
  for (std::size_t other = 1; other < 100; ++other)
    EXPECT_EQ(are_neighbours(0, other, 100), are_neighbours(other, 0, 100));
}

}  // namespace
}  // namespace pario::comm
