// Buffered files, compared with files of the kernel: the same calls give the same results and
// contents.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <initializer_list>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "directory.hpp"
#include "layers/buffers/buffers.hpp"
#include "layers/buffers/system_calls.hpp"
#include "read_file.hpp"

namespace {

using namespace pario;
using buffers::Handle;
using buffers::kPass;

hints::StreamHints small(std::uint64_t size = 64, std::uint64_t count = 3) {
  hints::StreamHints hints = hints::default_stream_hints();
  hints.size = size;
  hints.count = count;
  hints.delay = 0;
  return hints;
}

std::string contents(const std::string& path) { return pario::read_file(path); }

/// A buffered open file description; makes the calls of a wrapper.
class Buffered {
 public:
  Buffered(const std::string& path, int flags, const hints::StreamHints& hints = small())
      : fd_(::open(path.c_str(), flags, 0644)), handle_(buffers::open(fd_, flags, hints, path)) {
    EXPECT_NE(handle_, nullptr);
  }
  ~Buffered() {
    if (handle_ != nullptr) close();
  }
  long write(std::string_view data) {
    const iovec piece{const_cast<char*>(data.data()), data.size()};
    const long result = buffers::write(*handle_, {&piece, 1}, {});
    return result == kPass ? sign(::write(fd_, data.data(), data.size())) : result;
  }
  long pwrite(std::string_view data, std::uint64_t at) {
    const iovec piece{const_cast<char*>(data.data()), data.size()};
    const long result = buffers::write(*handle_, {&piece, 1}, at);
    return result == kPass ? sign(::pwrite(fd_, data.data(), data.size(), static_cast<off_t>(at)))
                           : result;
  }
  long read(std::string& data) {
    const iovec piece{data.data(), data.size()};
    const long result = buffers::read(*handle_, {&piece, 1}, {});
    return result == kPass ? sign(::read(fd_, data.data(), data.size())) : result;
  }
  /// As read(), into two pieces.
  long readv(std::string& data, std::size_t first) {
    const iovec pieces[] = {{data.data(), first}, {data.data() + first, data.size() - first}};
    const long result = buffers::read(*handle_, pieces, {});
    return result == kPass ? sign(::readv(fd_, pieces, 2)) : result;
  }
  long pread(std::string& data, std::uint64_t at) {
    const iovec piece{data.data(), data.size()};
    const long result = buffers::read(*handle_, {&piece, 1}, at);
    return result == kPass ? sign(::pread(fd_, data.data(), data.size(), static_cast<off_t>(at)))
                           : result;
  }
  long seek(std::int64_t offset, int whence) {
    const long result = buffers::seek(*handle_, offset, whence);
    return result == kPass ? sign(::lseek(fd_, offset, whence)) : result;
  }
  long truncate(std::uint64_t size) {
    buffers::sync_to_kernel(*handle_);
    const long result = sign(::ftruncate(fd_, static_cast<off_t>(size)));
    buffers::reload_offset(*handle_);
    return result;
  }
  long flush() { return buffers::flush(*handle_); }
  void leave() { buffers::stop_buffering(*handle_, buffers::Reason::mapping); }
  buffers::Statistics statistics() { return buffers::statistics(*handle_); }
  Handle& handle() { return *handle_; }
  long close() {
    const long error = buffers::close(*handle_, -1);
    handle_ = nullptr;
    ::close(fd_);
    return error;
  }

 private:
  static long sign(long result) { return result < 0 ? -errno : result; }
  int fd_;
  Handle* handle_;
};

/// An open file description without buffers.
class Plain {
 public:
  Plain(const std::string& path, int flags) : fd_(::open(path.c_str(), flags, 0644)) {}
  ~Plain() { ::close(fd_); }
  long write(std::string_view data) { return sign(::write(fd_, data.data(), data.size())); }
  long pwrite(std::string_view data, std::uint64_t at) {
    return sign(::pwrite(fd_, data.data(), data.size(), static_cast<off_t>(at)));
  }
  long read(std::string& data) { return sign(::read(fd_, data.data(), data.size())); }
  long readv(std::string& data, std::size_t) { return read(data); }
  long pread(std::string& data, std::uint64_t at) {
    return sign(::pread(fd_, data.data(), data.size(), static_cast<off_t>(at)));
  }
  long seek(std::int64_t offset, int whence) { return sign(::lseek(fd_, offset, whence)); }
  long truncate(std::uint64_t size) { return sign(::ftruncate(fd_, static_cast<off_t>(size))); }

 private:
  static long sign(long result) { return result < 0 ? -errno : result; }
  int fd_;
};

TEST(BufferedFile, SmallWritesBecomeLargeSystemCalls) {
  const Directory folder;
  Buffered file(folder / "out", O_WRONLY | O_CREAT, small(4096, 4));
  std::string expected;
  for (int i = 0; i < 10'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    ASSERT_EQ(file.write(line), static_cast<long>(line.size()));
    expected += line;
  }
  EXPECT_EQ(file.flush(), 0);
  const auto seen = file.statistics();
  EXPECT_EQ(seen.write.calls, 10'000u);
  EXPECT_EQ(seen.system_write.calls, (expected.size() + 4095) / 4096);
  EXPECT_EQ(seen.system_write.bytes, expected.size());
  EXPECT_EQ(file.close(), 0);
  EXPECT_EQ(contents(folder / "out"), expected);
}

/// A buffered file and one of the kernel; each step makes the same call on both.
class Twins {
 public:
  Twins(const std::string& buffered, const std::string& plain, int flags)
      : buffered_(buffered, flags), plain_(plain, flags) {}

  void step(std::mt19937& random) {
    const auto below = [&](std::uint32_t end) {
      return static_cast<std::uint32_t>(random() % end);
    };
    const std::string data(below(8) == 0 ? below(200) : below(40),
                           static_cast<char>('a' + below(26)));
    const std::uint64_t at = below(600);
    switch (below(9)) {
      case 0:
      case 1:
      case 2:
        ASSERT_EQ(buffered_.write(data), plain_.write(data));
        break;
      case 3:
        ASSERT_EQ(buffered_.pwrite(data, at), plain_.pwrite(data, at));
        break;
      case 4:
        compare_reads(data.size(), [&, first = below(2)](auto& file, std::string& room) {
          return first != 0 && room.size() > 1 ? file.readv(room, 1) : file.read(room);
        });
        break;
      case 5:
        compare_reads(data.size(),
                      [&](auto& file, std::string& room) { return file.pread(room, at); });
        break;
      case 6:
        seek(below(5), static_cast<std::int64_t>(at) - 100);
        break;
      case 7:
        ASSERT_EQ(buffered_.seek(0, SEEK_CUR), plain_.seek(0, SEEK_CUR));
        break;
      default:
        if (below(2) == 0)
          ASSERT_EQ(buffered_.truncate(at), plain_.truncate(at));
        else
          ASSERT_EQ(buffered_.flush(), 0);
    }
  }

 private:
  void seek(unsigned kind, std::int64_t offset) {
    constexpr int kWhence[] = {SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE};
    ASSERT_EQ(buffered_.seek(offset, kWhence[kind]), plain_.seek(offset, kWhence[kind]))
        << offset << " from " << kind;
  }
  template <class Read>
  void compare_reads(std::size_t size, Read read) {
    std::string ours(size, '.'), theirs(size, '.');
    ASSERT_EQ(read(buffered_, ours), read(plain_, theirs));
    ASSERT_EQ(ours, theirs);
  }

  Buffered buffered_;
  Plain plain_;
};

void random_sequence(const Directory& folder, unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string ours = folder / "ours", theirs = folder / "theirs";
  ::unlink(ours.c_str());
  ::unlink(theirs.c_str());
  constexpr int kFlags[] = {O_RDWR | O_CREAT, O_WRONLY | O_CREAT, O_RDWR | O_CREAT | O_APPEND,
                            O_WRONLY | O_CREAT | O_APPEND, O_RDONLY | O_CREAT};
  {
    std::vector<std::unique_ptr<Twins>> open;
    for (int i = 0; i < 120 && !testing::Test::HasFatalFailure(); ++i) {
      if (open.empty() || (open.size() < 4 && random() % 20 == 0))
        open.push_back(
            std::make_unique<Twins>(ours, theirs, kFlags[random() % 8 < 4 ? 0 : random() % 5]));
      if (random() % 30 == 0) open.erase(open.begin() + static_cast<long>(random() % open.size()));
      if (!open.empty()) open[random() % open.size()]->step(random);
    }
  }
  ASSERT_EQ(contents(ours), contents(theirs));
}

TEST(BufferedFile, RandomSequencesEqualThoseOfTheKernel) {
  const Directory folder;
  const char* chosen = std::getenv("PARIO_SEED");
  const unsigned first = chosen != nullptr ? static_cast<unsigned>(std::stoul(chosen)) : 1;
  for (unsigned seed = first; seed < first + (chosen != nullptr ? 1 : 1000) && !HasFatalFailure();
       ++seed)
    random_sequence(folder, seed);
}

TEST(BufferedFile, ThreadsThatShareAHandleLoseAndTearNoWrite) {
  const Directory folder;
  Buffered file(folder / "out", O_WRONLY | O_CREAT, small(256, 3));
  std::vector<std::thread> threads;
  for (char name = 'a'; name < 'e'; ++name)
    threads.emplace_back([&file, name] {
      for (int i = 0; i < 2000; ++i) EXPECT_EQ(file.write(std::string(9, name) + "\n"), 10);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(file.close(), 0);
  const std::string all = contents(folder / "out");
  ASSERT_EQ(all.size(), 80'000u);
  for (std::size_t at = 0; at < all.size(); at += 10)
    ASSERT_EQ(all.substr(at, 10), std::string(9, all[at]) + "\n");
}

TEST(BufferedFile, AppendedCallsAreNeverDivided) {
  const Directory folder;
  static std::atomic<int> torn{0};
  const auto before = buffers::system_calls.write;
  buffers::system_calls.write = [](int descriptor, const void* data, std::size_t size) {
    if (size % 10 != 0) ++torn;
    return base::system_call(SYS_write, descriptor, data, size);
  };
  Buffered file(folder / "log", O_WRONLY | O_CREAT | O_APPEND, small(64, 3));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(file.write("123456789\n"), 10);
  EXPECT_EQ(file.close(), 0);
  buffers::system_calls.write = before;
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(contents(folder / "log").size(), 1000u);
}

TEST(BufferedFile, TheNextWriteFlushOrCloseReportsADeferredError) {
  const Directory folder;
  const auto before = buffers::system_calls.pwritev;
  for (const int when : {0, 1, 2}) {
    Buffered file(folder / "full", O_WRONLY | O_CREAT, small());
    buffers::system_calls.pwritev = [](int, const iovec*, int, std::uint64_t) {
      return static_cast<long>(-ENOSPC);
    };
    EXPECT_EQ(file.write(std::string(40, 'x')), 40);
    if (when == 0) {
      EXPECT_EQ(file.flush(), -ENOSPC);
      EXPECT_EQ(file.flush(), 0) << "reported once";
    } else if (when == 1) {
      buffers::sync_to_kernel(file.handle());
      EXPECT_EQ(file.write("y"), -ENOSPC);
    }
    EXPECT_EQ(file.close(), when == 2 ? -ENOSPC : 0);
    buffers::system_calls.pwritev = before;
  }
}

TEST(BufferedFile, ShortAndInterruptedWritesContinue) {
  const Directory folder;
  static std::atomic<int> calls{0};
  const auto before = buffers::system_calls.pwritev;
  buffers::system_calls.pwritev = [](int descriptor, const iovec* pieces, int,
                                     std::uint64_t offset) {
    if (++calls % 3 == 0) return static_cast<long>(-EINTR);
    const iovec part{pieces[0].iov_base, std::min<std::size_t>(pieces[0].iov_len, 7)};
    return base::system_call(SYS_pwrite64, descriptor, part.iov_base, part.iov_len, offset);
  };
  std::string expected;
  {
    Buffered file(folder / "out", O_WRONLY | O_CREAT);
    for (int i = 0; i < 100; ++i) {
      expected += std::to_string(i);
      EXPECT_GT(file.write(std::to_string(i)), 0);
    }
  }
  buffers::system_calls.pwritev = before;
  EXPECT_EQ(contents(folder / "out"), expected);
}

/// A device whose writes fail, are short, or are interrupted at random.
struct Unreliable {
  static inline std::atomic<std::uint64_t> calls{0}, seed{0};
  static inline std::atomic<bool> failed{false};
  static long pwritev(int descriptor, const iovec* pieces, int, std::uint64_t offset) {
    const std::uint64_t random = base::xxh64(std::to_string(seed) + ' ' + std::to_string(++calls));
    if (random % 4 == 0) return -EINTR;
    if (random % 61 == 1)
      return failed = true, seed % 3 == 0 ? -ENOSPC : seed % 3 == 1 ? -EIO : -EDQUOT;
    const std::size_t all = pieces[0].iov_len, size = random % 4 == 1 ? 1 + random / 61 % all : all;
    return base::system_call(SYS_pwrite64, descriptor, pieces[0].iov_base, size, offset);
  }
};

/// Writes all bytes, or until a call reports an error. Returns true on an error.
bool writes_report_an_error(Buffered& file, std::string& expected) {
  for (unsigned i = 0; i < 60; ++i) {
    const std::string text(1 + (Unreliable::seed * 31 + i * 7) % 40,
                           static_cast<char>('a' + i % 26));
    if (file.write(text) < 0 || (i % 17 == 16 && file.flush() < 0)) return true;
    expected += text;
  }
  return false;
}

TEST(BufferedFile, EachErrorOfTheDeviceIsReportedAndNoOther) {
  const Directory folder;
  int failures = 0;
  const auto before = std::exchange(buffers::system_calls.pwritev, Unreliable::pwritev);
  for (Unreliable::seed = 1; Unreliable::seed <= 300; ++Unreliable::seed) {
    std::string expected;
    Unreliable::failed = false;
    Buffered file(folder / "out", O_WRONLY | O_CREAT | O_TRUNC, small(64, 3));
    const bool reported = writes_report_an_error(file, expected), last = file.close() < 0;
    EXPECT_EQ(reported || last, Unreliable::failed.load()) << Unreliable::seed;
    EXPECT_TRUE(reported || last || contents(folder / "out") == expected) << Unreliable::seed;
    failures += reported || last ? 1 : 0;
  }
  buffers::system_calls.pwritev = before;
  EXPECT_TRUE(failures > 30 && failures < 270) << failures;
}

TEST(BufferedFile, ExpiredDirtyBytesAreWritten) {
  const Directory folder;
  auto hints = small(4096);
  hints.delay = 1;
  Buffered file(folder / "log", O_WRONLY | O_CREAT, hints);
  EXPECT_EQ(file.write("seen by others"), 14);
  while (contents(folder / "log").empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(contents(folder / "log"), "seen by others");
}

TEST(BufferedFile, TheKernelEnforcesTheLimitOfFileSizes) {
  const Directory folder;
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small_files = {100, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small_files), 0);
  {
    Buffered file(folder / "out", O_WRONLY | O_CREAT);
    EXPECT_EQ(file.write(std::string(60, 'x')), 60);
    EXPECT_EQ(file.write(std::string(60, 'y')), 40);
    EXPECT_EQ(file.write("z"), -EFBIG);
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(contents(folder / "out"), std::string(60, 'x') + std::string(40, 'y'));
}

TEST(BufferedFile, AFileWithoutBufferingStaysSoUntilAllHandlesAreClosed) {
  const Directory folder;
  {
    Buffered file(folder / "out", O_RDWR | O_CREAT);
    EXPECT_EQ(file.write("01234"), 5);
    EXPECT_EQ(file.write("56789"), 5);
    file.leave();
    EXPECT_EQ(contents(folder / "out"), "0123456789");
    EXPECT_EQ(file.write("abc"), 3);
    EXPECT_EQ(contents(folder / "out"), "0123456789abc") << "at the offset, at once";
  }
  Buffered again(folder / "out", O_RDWR);
  EXPECT_EQ(again.write("X"), 1);
  EXPECT_EQ(contents(folder / "out"), "0123456789abc") << "buffered again";
}

void fill(const std::string& path, std::size_t bytes) {
  std::ofstream out(path, std::ios::binary);
  for (std::size_t i = 0; i < bytes; ++i) out.put(static_cast<char>(i * 7 % 251));
}

TEST(BufferedFile, SmallSequentialReadsBecomeFewSystemCalls) {
  const Directory folder;
  fill(folder / "in", 1'000'000);
  const std::string expected = contents(folder / "in");
  for (const bool in_pieces : {false, true}) {
    SCOPED_TRACE(in_pieces ? "two pieces" : "one piece");
    Buffered file(folder / "in", O_RDONLY, small(65536, 4));
    std::string all, room(100, '.');
    for (long got; (got = in_pieces ? file.readv(room, 30) : file.read(room)) > 0;)
      all.append(room, 0, static_cast<std::size_t>(got));
    EXPECT_EQ(all, expected);
    const auto seen = file.statistics();
    EXPECT_EQ(seen.read.calls, 10'001u);
    EXPECT_LT(seen.system_read.calls, 60u)
        << "a window each, what lies across two windows, the first ones, the end";
    EXPECT_GT(seen.prefetches, 10u);
    EXPECT_LT(seen.wasted, 2000u) << "what lies across two windows is read by the call itself";
  }
}

TEST(BufferedFile, ReadsIntoSeveralPiecesFindBytesThatAreNotWrittenYet) {
  const Directory folder;
  Buffered file(folder / "out", O_RDWR | O_CREAT, small(4096, 4));
  EXPECT_EQ(file.write("first second"), 12);
  EXPECT_EQ(file.seek(6, SEEK_SET), 6);
  std::string room(6, '.');
  EXPECT_EQ(file.readv(room, 2), 6);
  EXPECT_EQ(room, "second");
  EXPECT_EQ(file.statistics().system_write.calls, 0u);
}

TEST(BufferedFile, ASlowReaderOfANewFileReadsItsWindowsOnce) {
  const Directory folder;
  fill(folder / "in", 500'000);
  Buffered file(folder / "in", O_RDONLY, small(65536, 4));
  std::string room(100, '.');
  for (int i = 0; file.read(room) > 0; ++i)
    if (i == 1000) ::usleep(200'000);  // longer than a window is valid without a check
  EXPECT_LT(file.statistics().wasted, 2000u);
}

TEST(BufferedFile, ScatteredReadsAreNotReadAhead) {
  const Directory folder;
  fill(folder / "in", 1'000'000);
  Buffered file(folder / "in", O_RDONLY, small(65536, 4));
  std::mt19937 random(3);
  std::string room(100, '.');
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(file.pread(room, random() % 900'000), 100);
  EXPECT_LT(file.statistics().system_read.bytes, 110'000u);
}

TEST(BufferedFile, ReadersThatJumpStopReadAhead) {
  const Directory folder;
  fill(folder / "in", 10'000'000);
  Buffered file(folder / "in", O_RDONLY, small(65536, 4));
  std::string room(100, '.');
  for (std::uint64_t jump = 0; jump < 50; ++jump) {
    EXPECT_GE(file.seek(static_cast<std::int64_t>(jump * 190'000), SEEK_SET), 0);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(file.read(room), 100);
  }
  EXPECT_LT(file.statistics().system_read.bytes, 20u * 65536)
      << "of 50 jumps, only the first ones read whole windows";
  EXPECT_GT(file.statistics().wasted, 0u);
}

TEST(BufferedFile, AWriteDiscardsWindowsReadAhead) {
  const Directory folder;
  fill(folder / "in", 100'000);
  Buffered reader(folder / "in", O_RDONLY, small(8192, 4)), writer(folder / "in", O_WRONLY);
  std::string room(100, '.');
  for (int i = 0; i < 10; ++i) EXPECT_EQ(reader.read(room), 100);
  EXPECT_EQ(writer.pwrite("changed", 1000), 7);
  EXPECT_EQ(reader.read(room), 100);
  EXPECT_EQ(room.substr(0, 7), "changed");
}

TEST(BufferedFile, ThreadsThatReadAtOneOffsetGetEachByteOnce) {
  const Directory folder;
  fill(folder / "in", 400'000);
  Buffered file(folder / "in", O_RDONLY, small(4096, 4));
  std::atomic<long> sum{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      std::string room(50, '.');
      for (long got; (got = file.read(room)) > 0;) sum += got;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(sum, 400'000);
}

TEST(BufferedFile, SynchronousFilesAndPipesAreNotBuffered) {
  const Directory folder;
  const std::string path = folder / "sync";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_SYNC, 0644);
  EXPECT_EQ(buffers::open(fd, O_WRONLY | O_SYNC, small(), "sync"), nullptr);
  ::close(fd);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(buffers::open(ends[1], O_WRONLY, small(), "pipe"), nullptr);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(BufferedFile, TheMemoryLimitHoldsForAllFiles) {
  const Directory folder;
  buffers::set_memory_limit(3000);
  {
    Buffered one(folder / "one", O_WRONLY | O_CREAT, small(1000, 64));
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(one.write(std::string(100, 'x')), 100);
    EXPECT_EQ(contents(folder / "one").size() / 1000 >= 97, true)
        << "three buffers of 1000 bytes wait at most";
  }
  buffers::set_memory_limit(256 << 20);
  EXPECT_EQ(contents(folder / "one").size(), 100'000u);
}

TEST(BufferedFile, FlushFileWritesOnlyTheGivenFile) {
  const Directory folder;
  EXPECT_TRUE(buffers::is_idle());
  fill(folder / "other", 10);
  struct stat own, other;
  ASSERT_EQ(::stat((folder / "other").c_str(), &other), 0);
  {
    Buffered file(folder / "one", O_WRONLY | O_CREAT);
    EXPECT_FALSE(buffers::is_idle());
    file.write("bytes");
    ASSERT_EQ(::stat((folder / "one").c_str(), &own), 0);
    EXPECT_FALSE(buffers::flush_file(other.st_dev, other.st_ino));
    EXPECT_EQ(contents(folder / "one"), "");
    EXPECT_TRUE(buffers::flush_file(own.st_dev, own.st_ino));
    EXPECT_EQ(contents(folder / "one"), "bytes");
  }
  EXPECT_TRUE(buffers::is_idle());
  EXPECT_FALSE(buffers::flush_file(own.st_dev, own.st_ino));
}

TEST(BufferedFile, TheFirstWriteAfterAnOpeningWithOnePassesTheBuffers) {
  const Directory folder;
  const std::string path = folder / "log";
  const auto append = [&](std::initializer_list<std::string_view> pieces) {
    Buffered file(path, O_WRONLY | O_CREAT | O_APPEND);
    for (const std::string_view piece : pieces) file.write(piece);
    return contents(path);  // before the file is closed
  };
  EXPECT_EQ(append({"a"}), "") << "a new file";
  EXPECT_EQ(append({"b"}), "ab");
  EXPECT_EQ(append({"c", "d"}), "abc") << "the second write waits";
  EXPECT_EQ(append({"e", "f"}), "abcd") << "two can be joined";
  EXPECT_EQ(contents(path), "abcdef");
}

TEST(BufferedFile, CallsAreTimedIfTheirFiguresArePrinted) {
  const Directory folder;
  for (const bool verbose : {false, true}) {
    hints::StreamHints hints = small(1 << 20);
    hints.verbose = verbose;
    Buffered file(folder / "many", O_WRONLY | O_CREAT, hints);
    for (int i = 0; i < 1000; ++i) file.write("sixteen bytes ..");
    EXPECT_EQ(file.statistics().write.calls, 1000u);
    EXPECT_EQ(file.statistics().write.bytes, 16'000u);
    EXPECT_EQ(file.statistics().write.ticks > 0, verbose);
  }
}

}  // namespace
