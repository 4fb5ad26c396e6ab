// What is done to buffered files where the settings say nothing, by file system; and that it is done.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "stream/stream.hpp"

namespace {

using namespace pario;
using layout::Kind;

constexpr std::uint64_t MiB = 1 << 20;

hints::StreamHints liked_by(Kind kind, hints::StreamHints hints = hints::default_stream_hints()) {
  stream::fill_in(hints, kind);
  return hints;
}

TEST(StreamPolicy, NfsStoresEveryMegabyteAndHasSeveralReaders) {
  const auto hints = liked_by(Kind::nfs);
  EXPECT_EQ(hints.size, 1 * MiB);
  EXPECT_EQ(hints.writeback, 1 * MiB);
  EXPECT_EQ(hints.readers, 4u);
  EXPECT_GE(hints.prefetch, hints.readers) << "a reader without a window has nothing to do";
  EXPECT_GT(hints.count, hints.prefetch);
}

TEST(StreamPolicy, StripedFileSystemsHaveWindowsOfAnObjectOrAStripe) {
  for (const Kind kind : {Kind::lustre, Kind::ceph, Kind::ceph_fuse, Kind::gpfs}) EXPECT_EQ(liked_by(kind).size, 4 * MiB);
}

TEST(StreamPolicy, ALocalDiskAndWhatIsNotKnownHaveOneReaderAndTheKernelsWriteback) {
  for (const Kind kind : {Kind::local, Kind::tmpfs, Kind::unknown}) {
    const auto hints = liked_by(kind);
    EXPECT_EQ(hints.size, 1 * MiB);
    EXPECT_EQ(hints.count, 4u);
    EXPECT_EQ(hints.readers, 1u);
    EXPECT_EQ(hints.prefetch, 1u);
    EXPECT_GT(hints.writeback, 1ull << 60);
  }
}

TEST(StreamPolicy, WhatTheSettingsSayStays) {
  auto said = hints::default_stream_hints();
  said.size = 64 << 10;
  said.count = 3;
  said.readers = 2;
  said.writeback = 8 * MiB;
  said.prefetch = 0;
  const auto hints = liked_by(Kind::nfs, said);
  EXPECT_EQ(hints.size, 64u << 10);
  EXPECT_EQ(hints.count, 3u);
  EXPECT_EQ(hints.readers, 2u);
  EXPECT_EQ(hints.writeback, 8 * MiB);
  EXPECT_EQ(hints.prefetch, 0u) << "small reads are not to be buffered";
}

std::atomic<std::uint64_t> stored_bytes, stored_calls;
std::atomic<int> reading, most_reading;
stream::Kernel plain;

long slow_read(int descriptor, const iovec* pieces, int count, std::uint64_t offset) {
  const int now = ++reading;
  for (int most = most_reading; most < now && !most_reading.compare_exchange_weak(most, now);) {
  }
  ::usleep(20'000);
  const long result = plain.preadv(descriptor, pieces, count, offset);
  --reading;
  return result;
}

/// A file system that says that it is NFS.
class OnNfs : public testing::Test {
 protected:
  void SetUp() override {
    plain = stream::kernel;
    stored_bytes = stored_calls = 0;
    most_reading = 0;
    stream::kernel.kind = [](int) { return Kind::nfs; };
    stream::kernel.store = [](int, std::uint64_t, std::uint64_t bytes) {
      stored_bytes += bytes;
      ++stored_calls;
      return 0L;
    };
    fd_ = ::open(".", O_TMPFILE | O_RDWR, 0600);
    ASSERT_GE(fd_, 0);
  }
  void TearDown() override {
    ::close(fd_);
    stream::kernel = plain;
  }
  int fd_ = -1;
};

TEST_F(OnNfs, TheKernelIsToldToStoreEachMegabyte) {
  stream::Handle* handle = stream::open(fd_, O_RDWR, hints::default_stream_hints(), "file");
  ASSERT_NE(handle, nullptr);
  const std::string data(4096, 'x');
  const iovec piece{const_cast<char*>(data.data()), data.size()};
  for (std::uint64_t at = 0; at < 5 * MiB; at += data.size()) EXPECT_EQ(stream::write(*handle, {&piece, 1}, {}), 4096);
  EXPECT_EQ(stream::close(*handle, -1), 0);
  EXPECT_EQ(stored_calls, 5u);
  EXPECT_EQ(stored_bytes, 5 * MiB);
}

TEST_F(OnNfs, ASequentialReaderHasSeveralRequestsUnderWay) {
  ASSERT_EQ(::ftruncate(fd_, 16 * MiB), 0);
  stream::kernel.preadv = slow_read;
  stream::Handle* handle = stream::open(fd_, O_RDONLY, hints::default_stream_hints(), "file");
  ASSERT_NE(handle, nullptr);
  std::string data(64 << 10, 'x');
  const iovec piece{data.data(), data.size()};
  std::uint64_t sum = 0;
  for (long result = 1; result > 0; sum += static_cast<std::uint64_t>(result)) {
    result = stream::read(*handle, {&piece, 1}, {});
    if (result == stream::kPass) break;
  }
  EXPECT_EQ(sum, 16 * MiB);
  EXPECT_GE(most_reading, 3);
  EXPECT_EQ(stream::close(*handle, -1), 0);
}

}  // namespace
