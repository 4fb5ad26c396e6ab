// Process copies (hint whole): a small file is read once and served from memory until it changes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <string>
#include <thread>

#include "directory.hpp"
#include "layers/buffers/buffers.hpp"
#include "layers/buffers/system_calls.hpp"
#include "read_file.hpp"

namespace {

using namespace pario;

buffers::SystemCalls plain;
std::atomic<int> reads{0}, seeks{0};
long changes = 0;

/// Replaces the time stamps of a status by old ones, different after each change.
int status_with_old_times(int descriptor, struct stat& status) {
  const int result = plain.status(descriptor, status);
  status.st_mtim = status.st_ctim = {1'000'000 + changes, 1};
  return result;
}

hints::StreamHints copy_hints(std::uint64_t most = 1 << 20) {
  auto hints = hints::default_stream_hints();
  hints.size = 4096;
  hints.count = 2;
  hints.prefetch = 0;
  hints.whole = most;
  return hints;
}

class ProcessCopy : public testing::Test {
 protected:
  void SetUp() override {
    plain = buffers::system_calls;
    reads = seeks = 0;
    buffers::system_calls.status = status_with_old_times;
    buffers::system_calls.preadv = [](int descriptor, const iovec* pieces, int count,
                                      std::uint64_t offset) {
      ++reads;
      return plain.preadv(descriptor, pieces, count, offset);
    };
    buffers::system_calls.seek = [](int descriptor, std::int64_t offset, int whence) {
      ++seeks;
      return plain.seek(descriptor, offset, whence);
    };
    change(std::string(100'000, 'a'));
  }
  void TearDown() override { buffers::system_calls = plain; }
  void change(const std::string& contents) {
    std::ofstream(path_, std::ios::binary) << contents;
    ++changes;
  }
  static void wait_for_next_check() { std::this_thread::sleep_for(std::chrono::milliseconds(120)); }

  const Directory folder_;
  std::string path_ = folder_ / "table";
};

/// An open file of a program.
class Open {
 public:
  explicit Open(const std::string& path, int flags = O_RDONLY,
                const hints::StreamHints& hints = copy_hints())
      : descriptor_(::open(path.c_str(), flags)),
        handle_(buffers::open(descriptor_, flags, hints, path)) {}
  ~Open() {
    buffers::close(*handle_, -1);
    ::close(descriptor_);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

  std::string read(std::size_t bytes) {
    std::string data(bytes, 0);
    const iovec piece{data.data(), data.size()};
    const long result = buffers::read(*handle_, {&piece, 1}, {});
    data.resize(result < 0 ? 0 : static_cast<std::size_t>(result));
    return data;
  }
  std::string read_at(std::uint64_t offset, std::size_t bytes) {
    return seek(static_cast<std::int64_t>(offset), SEEK_SET) < 0 ? "" : read(bytes);
  }
  long seek(std::int64_t offset, int whence) { return buffers::seek(*handle_, offset, whence); }
  void write(const std::string& data, std::uint64_t offset) {
    const iovec piece{const_cast<char*>(data.data()), data.size()};
    EXPECT_EQ(buffers::write(*handle_, {&piece, 1}, offset), static_cast<long>(data.size()));
  }
  buffers::Handle& handle() { return *handle_; }

 private:
  int descriptor_;
  buffers::Handle* handle_;
};

TEST_F(ProcessCopy, ScatteredReadsAndSeeksMakeOneSystemCall) {
  Open file(path_);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(file.seek(0, SEEK_CUR), i == 0 ? 0 : i * 97 - 97 + 10);
    EXPECT_EQ(file.seek(0, SEEK_END), 100'000);
    EXPECT_EQ(file.read_at(static_cast<std::uint64_t>(i) * 97, 10), "aaaaaaaaaa");
  }
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(seeks, 0);
}

TEST_F(ProcessCopy, ReadsEndAtTheEndOfTheFile) {
  Open file(path_);
  EXPECT_EQ(file.read_at(99'990, 100).size(), 10u);
  EXPECT_EQ(file.read(100), "");
  EXPECT_EQ(file.read_at(200'000, 100), "");
  EXPECT_EQ(file.seek(-100'001, SEEK_END), -EINVAL);
}

TEST_F(ProcessCopy, AReopenedFileIsNotReadAgain) {
  for (int i = 0; i < 10; ++i) {
    Open file(path_);
    EXPECT_EQ(file.read(100'000).size(), 100'000u);
  }
  EXPECT_EQ(reads, 1);
}

TEST_F(ProcessCopy, AReopenedFileThatHasChangedIsReadAgain) {
  EXPECT_EQ(Open(path_).read(3), "aaa");
  change(std::string(100'000, 'b'));
  EXPECT_EQ(Open(path_).read(3), "bbb");
}

TEST_F(ProcessCopy, ChangesByOtherProcessesAreSeenAfterTheNextCheck) {
  Open file(path_);
  EXPECT_EQ(file.read(3), "aaa");
  change(std::string(50'000, 'b'));
  wait_for_next_check();
  EXPECT_EQ(file.read(3), "bbb");
  EXPECT_EQ(file.seek(0, SEEK_END), 50'000);
}

TEST_F(ProcessCopy, ChangesByThisProcessAreSeenAtOnce) {
  Open file(path_);
  EXPECT_EQ(file.read(3), "aaa");
  struct stat status;
  ASSERT_EQ(plain.status(::open(path_.c_str(), O_RDONLY | O_CLOEXEC), status), 0);
  buffers::flush_file(status.st_dev, status.st_ino);  // like truncate() by name
  change(std::string(50'000, 'b'));
  EXPECT_EQ(file.read(3), "bbb");
  {
    Open writer(path_, O_RDWR);
    writer.write("xyz", 0);
    EXPECT_EQ(file.read_at(0, 4), "xyzb");
    EXPECT_EQ(file.seek(0, SEEK_END), 50'000);
    writer.write("end", 50'000);
    EXPECT_EQ(file.seek(0, SEEK_END), 50'003);
  }
  ++changes;
  wait_for_next_check();
  EXPECT_EQ(file.read_at(49'999, 10), "bend");
}

TEST_F(ProcessCopy, ARecentlyChangedFileHasNoCopy) {
  buffers::system_calls.status = [](int descriptor, struct stat& status) {
    const int result = plain.status(descriptor, status);
    status.st_mtim.tv_sec += 3600;  // recent, however long this process pauses
    return result;
  };
  change("just now");
  Open file(path_);
  EXPECT_EQ(file.read(4), "just");
  ::usleep(1000);
  change("and then");
  EXPECT_EQ(file.read_at(0, 8), "and then");
}

TEST_F(ProcessCopy, LargeFilesHaveNoCopy) {
  Open large(path_, O_RDONLY, copy_hints(50'000));
  EXPECT_EQ(large.read(10), "aaaaaaaaaa");
  EXPECT_EQ(large.read_at(10, 10), "aaaaaaaaaa");
  EXPECT_EQ(reads, 2);
}

TEST_F(ProcessCopy, UnusedCopiesAreEvicted) {
  buffers::set_memory_limit(250'000);
  for (int i = 0; i < 10; ++i) {
    path_ = folder_ / std::to_string(i);
    change(std::string(100'000, static_cast<char>('a' + i)));
    Open file(path_);
    EXPECT_EQ(file.read(2), std::string(2, static_cast<char>('a' + i)));
    EXPECT_EQ(file.read_at(50'000, 2), std::string(2, static_cast<char>('a' + i)));
    EXPECT_EQ(reads, i + 1);
  }
  buffers::set_memory_limit(256 << 20);
}

TEST_F(ProcessCopy, TheChildOfAForkSeesItsOwnChanges) {
  EXPECT_EQ(Open(path_).read(3), "aaa");
  buffers::before_fork();
  const pid_t child = ::fork();
  if (child == 0) {
    buffers::after_fork_in_child();
    change(std::string(20, 'c'));
    ::_exit(Open(path_).read(3) == "ccc" ? 0 : 1);
  }
  buffers::after_fork_in_parent();
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(ProcessCopy, RandomReadsAndChangesEqualThoseOfTheKernel) {
  std::mt19937 random(7);
  const auto below = [&](int end) {
    return std::uniform_int_distribution<int>(0, end - 1)(random);
  };
  Open file(path_);
  for (int i = 0; i < 2000; ++i) {
    if (below(20) == 0) {
      buffers::sync_to_kernel(file.handle());
      change(std::string(static_cast<std::size_t>(below(200'000)),
                         static_cast<char>('a' + below(26))));
      buffers::reload_offset(file.handle());
    }
    const std::string contents = pario::read_file(path_);
    const auto at = static_cast<std::uint64_t>(below(200'000));
    const auto bytes = static_cast<std::size_t>(below(9000));
    EXPECT_EQ(file.read_at(at, bytes), at < contents.size() ? contents.substr(at, bytes) : "");
    EXPECT_EQ(file.seek(0, SEEK_END), static_cast<long>(contents.size()));
  }
}

/// Delays the writes until it is set.
std::promise<void> go;

TEST(KeptHandle, EnqueuedBytesAreWrittenWithoutAWait) {
  const Directory folder;
  const std::string path = folder / "out";
  plain = buffers::system_calls;
  buffers::system_calls.pwritev = [](int descriptor, const iovec* pieces, int count,
                                     std::uint64_t offset) {
    go.get_future().wait();
    return plain.pwritev(descriptor, pieces, count, offset);
  };
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT, 0644);
  buffers::Handle* handle = buffers::open(descriptor, O_WRONLY, copy_hints(0), path);
  const iovec piece{const_cast<char*>("late"), 4};
  EXPECT_EQ(buffers::write(*handle, {&piece, 1}, {}), 4);
  EXPECT_TRUE(buffers::keep_handle(*handle, buffers::DirtyBytes::enqueue))
      << "returns while the write is under way";
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
  go.set_value();
  EXPECT_EQ(buffers::close(*handle, -1), 0);
  ::close(descriptor);
  EXPECT_EQ(std::filesystem::file_size(path), 4u);
  buffers::system_calls = plain;
}

TEST(KeptHandle, AHandleWithoutDirtyBytesIsClosedAtOnce) {
  const int descriptor = ::open("/tmp", O_TMPFILE | O_RDWR, 0600);
  buffers::Handle* handle = buffers::open(descriptor, O_RDWR, copy_hints(0), "nothing");
  EXPECT_FALSE(buffers::keep_handle(*handle, buffers::DirtyBytes::enqueue));
  EXPECT_TRUE(buffers::keep_handle(*handle, buffers::DirtyBytes::keep));
  buffers::close(*handle, -1);
  ::close(descriptor);
}

}  // namespace
