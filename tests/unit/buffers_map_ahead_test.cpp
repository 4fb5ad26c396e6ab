// Read-ahead for mapped files: several threads read, only one process of the node reads each part,
// and only while the file is mapped.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "layers/buffers/map_ahead.hpp"
#include "layers/buffers/system_calls.hpp"

namespace {

using namespace pario;
namespace map_ahead = buffers::map_ahead;

constexpr std::uint64_t MiB = 1 << 20;

struct Counts {
  std::atomic<std::uint64_t> bytes, reading, most;
  std::atomic<bool> blocks;  ///< reads wait after some bytes have been read
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
  const long result = plain.preadv(descriptor, pieces, count, offset);
  --counts->reading;
  if (result > 0) counts->bytes += static_cast<std::uint64_t>(result);
  return result;
}

class MapAhead : public testing::Test {
 protected:
  void SetUp() override {
    plain = buffers::system_calls;
    counts = static_cast<Counts*>(
        ::mmap(nullptr, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    buffers::system_calls.preadv = counted_read;
    fd_ = ::open("/tmp", O_TMPFILE | O_RDWR, 0600);
    ASSERT_EQ(::ftruncate(fd_, kSize), 0);
  }
  void TearDown() override {
    map_ahead::stop(&here_);
    for (int i = 0; i < 5000 && counts->reading != 0; ++i) ::usleep(1000);
    ::usleep(150'000);  // time for threads that check the mapping after a call
    buffers::system_calls = plain;
    ::close(fd_);
    ::munmap(counts, sizeof *counts);
  }
  void start(base::Extent range = {0, kSize}) { map_ahead::start(&here_, range, fd_, 4); }
  static bool reaches(std::uint64_t bytes) {
    for (int i = 0; i < 120'000 && counts->bytes < bytes; ++i) ::usleep(1000);
    return counts->bytes >= bytes;
  }

  static constexpr std::uint64_t kSize = 40 * MiB + 5;
  char here_ = 0;
  int fd_ = -1;
};

TEST_F(MapAhead, SeveralThreadsReadAWholeMapping) {
  start();
  EXPECT_TRUE(reaches(kSize));
  EXPECT_EQ(counts->bytes, kSize);
  EXPECT_GE(counts->most, 2u);
  EXPECT_LE(counts->most, 4u);
}

TEST_F(MapAhead, ReadsOnlyTheMappedRange) {
  start({10 * MiB, 13 * MiB});
  EXPECT_TRUE(reaches(3 * MiB));
  ::usleep(50'000);
  EXPECT_EQ(counts->bytes, 3 * MiB);
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
  map_ahead::stop(&here_);
  counts->blocks = false;
  while (counts->reading != 0) ::usleep(1000);
  EXPECT_LT(counts->bytes, kSize);
}

TEST_F(MapAhead, OneProcessOfTheNodeReadsAllParts) {
  pid_t children[3];
  for (pid_t& child : children) {
    child = ::fork();
    if (child != 0) continue;
    map_ahead::reset_in_child();
    start();
    const bool all = reaches(kSize);
    ::usleep(400'000);  // the next process finds no part to read
    ::_exit(all ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(counts->bytes, kSize);
  EXPECT_LE(counts->most, 4u);
}

}  // namespace
