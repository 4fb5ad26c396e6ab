// Read-ahead for mapped files: several threads read, where the program touches the mapping and in
// proportion to it, and only one process of the node reads each part.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "layers/buffers/map_ahead.hpp"
#include "layers/buffers/map_allowance.hpp"
#include "layers/buffers/node_memory.hpp"
#include "layers/buffers/system_calls.hpp"

namespace {

using namespace pario;
using buffers::MapAllowance;
namespace map_ahead = buffers::map_ahead;

constexpr std::uint64_t MiB = 1 << 20;

struct Counts {
  std::atomic<std::uint64_t> bytes, reading, most;
  std::atomic<std::uint64_t> parts;   ///< a bit for each MiB that was read
  std::atomic<std::uint64_t> probes;  ///< questions whether a byte is cached
  std::atomic<bool> blocks;           ///< reads wait after some bytes have been read
  std::atomic<bool> is_cached;        ///< the file is in the kernel's cache
  std::atomic<bool> is_full;          ///< the memory of the host
  std::atomic<bool> waits_for_two;    ///< reads wait for the first two at the same time
};

Counts* counts = nullptr;
buffers::SystemCalls plain;

long counted_read(int descriptor, const iovec* pieces, int count, std::uint64_t offset) {
  const std::uint64_t now = ++counts->reading;
  for (std::uint64_t most = counts->most;
       most < now && !counts->most.compare_exchange_weak(most, now);) {
  }
  ::usleep(3000);
  while (counts->blocks && counts->bytes > 0) ::usleep(1000);
  for (int i = 0; i < 120'000 && counts->waits_for_two && counts->most < 2; ++i) ::usleep(1000);
  const long result = plain.preadv(descriptor, pieces, count, offset);
  --counts->reading;
  counts->parts |= 1ull << (offset / MiB);
  if (result > 0) counts->bytes += static_cast<std::uint64_t>(result);
  return result;
}

bool answer_cached(int, std::uint64_t) {
  ++counts->probes;
  return counts->is_cached;
}

class MapAhead : public testing::Test {
 protected:
  void SetUp() override {
    plain = buffers::system_calls;
    counts = static_cast<Counts*>(
        ::mmap(nullptr, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    buffers::system_calls.preadv = counted_read;
    buffers::system_calls.is_cached = answer_cached;
    buffers::system_calls.is_memory_free = [] { return !counts->is_full; };
    buffers::system_calls.start_reading = [](int, std::uint64_t, std::uint64_t) { return 0L; };
    fd_ = ::open("/tmp", O_TMPFILE | O_RDWR, 0600);
    ASSERT_EQ(::ftruncate(fd_, kSize), 0);
    here_ = static_cast<char*>(::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, fd_, 0));
    ASSERT_NE(here_, MAP_FAILED);
  }
  void TearDown() override {
    map_ahead::stop(here_);
    for (int i = 0; i < 5000 && counts->reading != 0; ++i) ::usleep(1000);
    ::usleep(150'000);  // time for threads that check the mapping after a call
    buffers::system_calls = plain;
    ::munmap(here_, kSize);
    ::close(fd_);  // `counts` stays: a thread of the test may be late
  }
  void start(base::Extent range = {0, kSize}) {
    map_ahead::start(here_ + range.begin, range, fd_, 4);
  }
  void touch(base::Extent range) const {
    for (std::uint64_t at = range.begin; at < range.end; at += 4096) {
      const volatile char byte = here_[at];
      static_cast<void>(byte);
    }
  }
  template <class Condition>
  static bool becomes(Condition condition) {
    for (int i = 0; i < 120'000 && !condition(); ++i) ::usleep(1000);
    return condition();
  }
  static bool reaches(std::uint64_t bytes) {
    return becomes([=] { return counts->bytes >= bytes; });
  }
  static bool is_read(std::uint64_t part) { return (counts->parts >> part & 1) != 0; }

  static constexpr std::uint64_t kSize = 40 * MiB + 5;
  char* here_ = nullptr;
  int fd_ = -1;
};

TEST_F(MapAhead, SeveralThreadsReadAWholeMappingThatIsTouched) {
  counts->waits_for_two = true;
  start();
  touch({0, kSize});
  EXPECT_TRUE(reaches(kSize));
  EXPECT_EQ(counts->bytes, kSize);
  EXPECT_GE(counts->most, 2u);
  EXPECT_LE(counts->most, 4u);
}

TEST_F(MapAhead, ReadsFewBytesOfAMappingThatIsNotTouched) {
  start();
  EXPECT_TRUE(reaches(MapAllowance::kOfMapping));
  ::usleep(200'000);
  EXPECT_LE(counts->bytes, 2 * MapAllowance::kOfMapping);  // other files of the process have pages
}

TEST_F(MapAhead, ReadsWhereTheProgramTouchesTheMapping) {
  start();
  EXPECT_TRUE(reaches(MapAllowance::kOfMapping));
  touch({30 * MiB, 31 * MiB});
  EXPECT_TRUE(becomes([] { return is_read(30) && is_read(31); }));
}

TEST_F(MapAhead, ReadsOnlyTheMappedRange) {
  start({10 * MiB, 13 * MiB});
  EXPECT_TRUE(reaches(3 * MiB));
  touch({10 * MiB, 13 * MiB});
  ::usleep(50'000);
  EXPECT_EQ(counts->bytes, 3 * MiB);
  EXPECT_EQ(counts->parts, 7ull << 10);
}

TEST_F(MapAhead, ReadsNothingThatIsCached) {
  counts->is_cached = true;
  start();
  EXPECT_TRUE(becomes([] { return counts->probes >= 2 * (kSize / MiB + 1); }));
  EXPECT_EQ(counts->bytes, 0u);
}

TEST_F(MapAhead, ReadsNothingIfTheMemoryIsFull) {
  counts->is_full = true;
  start();
  touch({0, kSize});
  EXPECT_TRUE(becomes([] { return counts->probes > 0; }));
  ::usleep(50'000);
  EXPECT_EQ(counts->bytes, 0u);
}

TEST_F(MapAhead, IgnoresSmallMappings) {
  start({0, MiB / 2});
  ::usleep(50'000);
  EXPECT_EQ(counts->bytes, 0u);
}

TEST_F(MapAhead, StopsWhenTheFileIsUnmapped) {
  counts->blocks = true;
  start();
  while (counts->bytes == 0) ::usleep(1000);
  map_ahead::stop(here_);
  counts->blocks = false;
  while (counts->reading != 0) ::usleep(1000);
  touch({0, kSize});
  ::usleep(100'000);
  EXPECT_LT(counts->bytes, kSize);
}

TEST_F(MapAhead, EndsAtTheEndOfATruncatedFile) {
  ASSERT_EQ(::ftruncate(fd_, 2 * MiB), 0);
  start();
  EXPECT_TRUE(reaches(2 * MiB));
  ::usleep(50'000);
  EXPECT_EQ(counts->bytes, 2 * MiB);
}

TEST_F(MapAhead, OneProcessOfTheNodeReadsEachPart) {
  // The claims stay while this process has them open, also if the first child ends before the last
  // one begins.
  buffers::NodeMemory claims;
  struct stat file;
  ASSERT_EQ(plain.status(fd_, file), 0);
  ASSERT_TRUE(claims.open("mapped", file, 4096));
  pid_t children[3];
  for (pid_t& child : children) {
    child = ::fork();
    if (child != 0) continue;
    map_ahead::reset_in_child();
    start();
    touch({0, kSize});
    ::_exit(reaches(kSize) ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  claims.close();
  EXPECT_EQ(counts->bytes, kSize);
  EXPECT_LE(counts->most, 4u);
}

TEST_F(MapAhead, ReadsAgainAfterAProcessThatWasKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    map_ahead::reset_in_child();
    start();
    touch({0, kSize});
    reaches(kSize / 2);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  counts->parts = 0;
  start();
  EXPECT_TRUE(becomes([] { return is_read(0); }));
}

TEST(MapAllowance, GrowsWithTouchedBytesAndFaults) {
  MapAllowance allowance;
  allowance.add_mapping({100 * MiB, 7}, true);
  EXPECT_EQ(allowance.take({100 * MiB, 7}, MiB, 100), 4u);
  EXPECT_EQ(allowance.take({100 * MiB, 7}, MiB, 100), 0u);
  EXPECT_EQ(allowance.take({103 * MiB, 7}, MiB, 2), 2u);
  EXPECT_EQ(allowance.take({102 * MiB, 7}, MiB, 100), 4u);  // unmapped pages take nothing back
  EXPECT_EQ(allowance.take({102 * MiB, 7 + 32}, MiB, 100), 2u);
  allowance.give_back(MiB);
  EXPECT_EQ(allowance.take({102 * MiB, 7 + 32}, MiB, 100), 1u);
}

}  // namespace
