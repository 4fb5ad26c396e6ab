// Node copies (hint read_once): the processes of a node share the parts that one of them has read.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "directory.hpp"
#include "layers/buffers/buffers.hpp"
#include "layers/buffers/system_calls.hpp"

namespace {

using namespace pario;
using layout::Kind;

constexpr std::uint64_t MiB = 1 << 20;

/// Counters shared by all processes of a test.
struct Counts {
  std::atomic<std::uint64_t> bytes, reading;
  std::atomic<int> finished;  ///< processes
};

Counts* counts = nullptr;
buffers::SystemCalls plain;
bool blocks = false;

long counted_read(int descriptor, const iovec* pieces, int count, std::uint64_t offset) {
  ++counts->reading;
  while (blocks) ::usleep(1000);
  const long result = plain.preadv(descriptor, pieces, count, offset);
  if (result > 0) counts->bytes += static_cast<std::uint64_t>(result);
  return result;
}

hints::StreamHints read_once_hints() {
  auto hints = hints::default_stream_hints();
  hints.read_once = true;
  hints.prefetch = 0;
  return hints;
}

class NodeCopy : public testing::Test {
 protected:
  void SetUp() override {
    plain = buffers::system_calls;
    counts = static_cast<Counts*>(
        ::mmap(nullptr, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    buffers::system_calls.file_system = [](int) { return Kind::nfs; };
    buffers::system_calls.preadv = counted_read;
    write(9 * MiB + 17, 1);
  }
  void TearDown() override {
    blocks = false;
    buffers::end_buffering();
    buffers::system_calls = plain;
    EXPECT_EQ(count_copies(), 0u) << "a copy remains";
    ::munmap(counts, sizeof *counts);
  }

  void write(std::uint64_t bytes, int seed) {
    contents_.resize(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i)
      contents_[i] = static_cast<char>((i * 2654435761u >> 7) + static_cast<std::uint64_t>(seed));
    std::ofstream(path_, std::ios::binary) << contents_;
  }

  /// Reads the whole file by calls of `call` bytes. True if the contents are right.
  bool is_read(std::uint64_t call, int flags = O_RDONLY) const {
    const int fd = ::open(path_.c_str(), flags);
    buffers::Handle* handle = buffers::open(fd, flags, read_once_hints(), path_);
    if (handle == nullptr) return false;
    std::string found, data(call, 0);
    const iovec piece{data.data(), data.size()};
    for (long result = 1; result > 0;) {
      result = buffers::read(*handle, {&piece, 1}, {});
      if (result > 0) found.append(data, 0, static_cast<std::size_t>(result));
    }
    buffers::close(*handle, -1);
    ::close(fd);
    return found == contents_;
  }

  std::size_t count_copies() const {
    struct stat status;
    if (::stat(path_.c_str(), &status) != 0) return 0;
    const std::string mine =
        "-once-" + std::to_string(status.st_dev) + "-" + std::to_string(status.st_ino) + "-";
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
      count += entry.path().filename().string().find(mine) != std::string::npos;
    return count;
  }

  template <class Work>
  static pid_t fork_child(Work work) {
    const pid_t child = ::fork();
    if (child == 0) {
      buffers::after_fork_in_child();
      const bool right = work();
      buffers::end_buffering();
      ::_exit(right ? 0 : 1);
    }
    return child;
  }
  static int wait_for(pid_t child) {
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  }

  const Directory folder_;
  const std::string path_ = folder_ / "file";
  std::string contents_;
};

TEST_F(NodeCopy, ManyProcessesReadEachByteOnce) {
  ASSERT_TRUE(is_read(MiB));  // keeps the copy until the end
  pid_t children[6];
  for (pid_t& child : children)
    child = fork_child([&] { return is_read(100'000) && is_read(5 * MiB); });
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(counts->bytes, contents_.size());
  EXPECT_EQ(count_copies(), 1u);
}

TEST_F(NodeCopy, ProcessesThatStartTogetherShareTheReads) {
  pid_t children[4];
  for (pid_t& child : children)
    child = fork_child([&] {
      const bool right = is_read(MiB);
      ++counts->finished;  // the copy stays while a process has it open
      for (int i = 0; i < 120'000 && counts->finished < 4; ++i) ::usleep(1000);
      return right;
    });
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(counts->bytes, contents_.size());
}

TEST_F(NodeCopy, AProcessKilledDuringAReadBlocksNoOther) {
  const pid_t child = fork_child([&] {
    blocks = true;
    return is_read(MiB);
  });
  while (counts->reading == 0) ::usleep(1000);
  ::kill(child, SIGKILL);
  wait_for(child);
  EXPECT_TRUE(is_read(MiB));
  EXPECT_EQ(counts->bytes, contents_.size());
}

TEST_F(NodeCopy, AChangedFileIsReadAgain) {
  EXPECT_TRUE(is_read(MiB));
  ::usleep(20'000);  // a tick of the file system's clock
  write(6 * MiB, 2);
  EXPECT_TRUE(is_read(MiB));
  EXPECT_EQ(counts->bytes, (9 * MiB + 17) + 6 * MiB);
}

TEST_F(NodeCopy, AFileOpenForWritingHasNoCopy) {
  EXPECT_TRUE(is_read(MiB, O_RDWR));
  EXPECT_EQ(count_copies(), 0u);
}

TEST_F(NodeCopy, ALocalFileHasNoCopy) {
  buffers::system_calls.file_system = [](int) { return Kind::local; };
  EXPECT_TRUE(is_read(MiB));
  EXPECT_EQ(count_copies(), 0u);
}

TEST_F(NodeCopy, AFileLargerThanTheMemoryLimitHasNoCopy) {
  buffers::set_memory_limit(4 * MiB);
  EXPECT_TRUE(is_read(MiB));
  EXPECT_EQ(count_copies(), 0u);
  buffers::set_memory_limit(256 * MiB);
}

}  // namespace
