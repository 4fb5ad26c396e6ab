// The default hints of each kind of file system, and their effect.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "layers/buffers/buffers.hpp"
#include "layers/buffers/system_calls.hpp"

namespace {

using namespace pario;
using layout::Kind;

constexpr std::uint64_t MiB = 1 << 20;

hints::StreamHints defaults_of(Kind kind,
                               hints::StreamHints hints = hints::default_stream_hints()) {
  buffers::fill_unset_hints(hints, kind);
  return hints;
}

TEST(BufferPolicy, NfsStartsWritebackPerMebibyteAndHasSeveralReaders) {
  const auto hints = defaults_of(Kind::nfs);
  EXPECT_EQ(hints.size, 1 * MiB);
  EXPECT_EQ(hints.writeback, 1 * MiB);
  EXPECT_EQ(hints.readers, 4u);
  EXPECT_GE(hints.prefetch, hints.readers) << "each reader needs a window";
  EXPECT_GT(hints.count, hints.prefetch);
}

TEST(BufferPolicy, StripedFileSystemsHaveWindowsOfAStripe) {
  for (const Kind kind : {Kind::lustre, Kind::ceph, Kind::ceph_fuse, Kind::gpfs})
    EXPECT_EQ(defaults_of(kind).size, 4 * MiB);
}

TEST(BufferPolicy, LocalAndUnknownFileSystemsHaveOneReaderAndNoWriteback) {
  for (const Kind kind : {Kind::local, Kind::tmpfs, Kind::unknown}) {
    const auto hints = defaults_of(kind);
    EXPECT_EQ(hints.size, 1 * MiB);
    EXPECT_EQ(hints.count, 4u);
    EXPECT_EQ(hints.readers, 1u);
    EXPECT_EQ(hints.prefetch, 1u);
    EXPECT_GT(hints.writeback, 1ull << 60);
  }
}

TEST(BufferPolicy, HintsOfTheUserStay) {
  auto chosen = hints::default_stream_hints();
  chosen.size = 64 << 10;
  chosen.count = 3;
  chosen.readers = 2;
  chosen.writeback = 8 * MiB;
  chosen.prefetch = 0;
  const auto hints = defaults_of(Kind::nfs, chosen);
  EXPECT_EQ(hints.size, 64u << 10);
  EXPECT_EQ(hints.count, 3u);
  EXPECT_EQ(hints.readers, 2u);
  EXPECT_EQ(hints.writeback, 8 * MiB);
  EXPECT_EQ(hints.prefetch, 0u) << "0 switches read-ahead off";
}

std::atomic<std::uint64_t> stored_bytes, stored_calls;
std::atomic<int> reading, most_reading;
buffers::SystemCalls plain;

/// Reads; from the middle of the file on not before three reads have been in flight together.
long slow_read(int descriptor, const iovec* pieces, int count, std::uint64_t offset) {
  const int now = ++reading;
  for (int most = most_reading; most < now && !most_reading.compare_exchange_weak(most, now);) {
  }
  for (int i = 0; i < 60'000 && offset >= 8 * MiB && most_reading < 3; ++i) ::usleep(1000);
  const long result = plain.preadv(descriptor, pieces, count, offset);
  --reading;
  return result;
}

/// Files on a file system that claims to be NFS.
class OnNfs : public testing::Test {
 protected:
  void SetUp() override {
    plain = buffers::system_calls;
    stored_bytes = stored_calls = 0;
    most_reading = 0;
    buffers::system_calls.file_system = [](int) { return Kind::nfs; };
    buffers::system_calls.start_writeback = [](int, std::uint64_t, std::uint64_t bytes) {
      stored_bytes += bytes;
      ++stored_calls;
      return 0L;
    };
    fd_ = ::open(".", O_TMPFILE | O_RDWR, 0600);
    ASSERT_GE(fd_, 0);
  }
  void TearDown() override {
    ::close(fd_);
    buffers::system_calls = plain;
  }
  int fd_ = -1;
};

TEST_F(OnNfs, WritebackStartsAfterEachMebibyte) {
  auto hints = hints::default_stream_hints();
  hints.delay = 0;
  buffers::Handle* handle = buffers::open(fd_, O_RDWR, hints, "file");
  ASSERT_NE(handle, nullptr);
  const std::string data(4096, 'x');
  const iovec piece{const_cast<char*>(data.data()), data.size()};
  for (std::uint64_t at = 0; at < 5 * MiB; at += data.size())
    EXPECT_EQ(buffers::write(*handle, {&piece, 1}, {}), 4096);
  EXPECT_EQ(buffers::close(*handle, -1), 0);
  EXPECT_EQ(stored_calls, 5u);
  EXPECT_EQ(stored_bytes, 5 * MiB);
}

TEST_F(OnNfs, ASequentialReaderHasSeveralRequestsInFlight) {
  ASSERT_EQ(::ftruncate(fd_, 16 * MiB), 0);
  buffers::system_calls.preadv = slow_read;
  buffers::Handle* handle = buffers::open(fd_, O_RDONLY, hints::default_stream_hints(), "file");
  ASSERT_NE(handle, nullptr);
  std::string data(64 << 10, 'x');
  const iovec piece{data.data(), data.size()};
  std::uint64_t sum = 0;
  for (long result = 1; result > 0; sum += static_cast<std::uint64_t>(result)) {
    result = buffers::read(*handle, {&piece, 1}, {});
    if (result == buffers::kPass) break;
  }
  EXPECT_EQ(sum, 16 * MiB);
  EXPECT_GE(most_reading, 3);
  EXPECT_EQ(buffers::close(*handle, -1), 0);
}

}  // namespace
