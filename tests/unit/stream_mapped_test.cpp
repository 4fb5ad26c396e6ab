// Mapped files are read ahead by several readers, each piece by one process of the node, and only while they are mapped.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "stream/mapped.hpp"
#include "stream/stream.hpp"

namespace {

using namespace pario;
namespace mapped = stream::mapped;

constexpr std::uint64_t MiB = 1 << 20;

struct Counts {
  std::atomic<std::uint64_t> bytes, reading, most;
  std::atomic<bool> holds;  ///< Reads wait, once some bytes have been read.
};

Counts* counts = nullptr;
stream::Kernel plain;

long counted_read(int descriptor, const iovec* pieces, int count, std::uint64_t offset) {
  const std::uint64_t now = ++counts->reading;
  for (std::uint64_t most = counts->most; most < now && !counts->most.compare_exchange_weak(most, now);) {
  }
  ::usleep(3000);
  while (counts->holds && counts->bytes > 0) ::usleep(1000);
  const long result = plain.preadv(descriptor, pieces, count, offset);
  --counts->reading;
  if (result > 0) counts->bytes += static_cast<std::uint64_t>(result);
  return result;
}

class Mapped : public testing::Test {
 protected:
  void SetUp() override {
    plain = stream::kernel;
    counts = static_cast<Counts*>(::mmap(nullptr, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    stream::kernel.preadv = counted_read;
    fd_ = ::open("/tmp", O_TMPFILE | O_RDWR, 0600);
    ASSERT_EQ(::ftruncate(fd_, kSize), 0);
  }
  void TearDown() override {
    mapped::end(&here_);
    for (int i = 0; i < 5000 && counts->reading != 0; ++i) ::usleep(1000);
    ::usleep(150'000);  // threads that have ended a call look whether the mapping is there
    stream::kernel = plain;
    ::close(fd_);
    ::munmap(counts, sizeof *counts);
  }
  void begin(base::Extent range = {0, kSize}) { mapped::begin(&here_, range, fd_, 4); }
  static bool reaches(std::uint64_t bytes) {
    for (int i = 0; i < 120'000 && counts->bytes < bytes; ++i) ::usleep(1000);
    return counts->bytes >= bytes;
  }

  static constexpr std::uint64_t kSize = 40 * MiB + 5;
  char here_ = 0;
  int fd_ = -1;
};

TEST_F(Mapped, AMappingIsReadAsAWholeBySeveralReaders) {
  begin();
  EXPECT_TRUE(reaches(kSize));
  EXPECT_EQ(counts->bytes, kSize);
  EXPECT_GE(counts->most, 2u);
  EXPECT_LE(counts->most, 4u);
}

TEST_F(Mapped, OnlyTheMappedRangeIsRead) {
  begin({10 * MiB, 13 * MiB});
  EXPECT_TRUE(reaches(3 * MiB));
  ::usleep(50'000);
  EXPECT_EQ(counts->bytes, 3 * MiB);
}

TEST_F(Mapped, ASmallMappingIsNotReadAhead) {
  begin({0, MiB / 2});
  ::usleep(50'000);
  EXPECT_EQ(counts->bytes, 0u);
}

TEST_F(Mapped, ReadingEndsWithTheMapping) {
  counts->holds = true;
  begin();
  while (counts->bytes == 0) ::usleep(1000);
  mapped::end(&here_);
  counts->holds = false;
  while (counts->reading != 0) ::usleep(1000);
  EXPECT_LT(counts->bytes, kSize);
}

TEST_F(Mapped, OneProcessOfTheNodeReads) {
  pid_t children[3];
  for (pid_t& child : children) {
    child = ::fork();
    if (child != 0) continue;
    mapped::forget();
    begin();
    const bool all = reaches(kSize);
    ::usleep(400'000);  // whose turn is next finds nothing to do
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
