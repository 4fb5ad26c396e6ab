// Deferred errors of several open descriptions of a file, and signals that end the process.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "directory.hpp"
#include "layers/buffers/buffers.hpp"
#include "layers/buffers/system_calls.hpp"
#include "read_file.hpp"

namespace {

using namespace pario;

class Errors : public ::testing::Test {
 protected:
  ~Errors() override { buffers::system_calls = plain_; }

  buffers::Handle* open(int flags) {
    hints::StreamHints hints = hints::default_stream_hints();
    hints.size = 64;
    hints.count = 2;
    hints.delay = 0;
    const int descriptor = ::open(path_.c_str(), flags | O_CREAT, 0644);
    return buffers::open(descriptor, flags, hints, path_);
  }
  static long write(buffers::Handle* handle, std::string_view data) {
    const iovec piece{const_cast<char*>(data.data()), data.size()};
    return buffers::write(*handle, {&piece, 1}, {});
  }
  /// Writes bytes that do not reach the file, in the background.
  static void fail(buffers::Handle* handle) {
    buffers::system_calls.pwritev = [](int, const iovec*, int, std::uint64_t) {
      return static_cast<long>(-ENOSPC);
    };
    EXPECT_EQ(write(handle, "lost"), 4);
    buffers::sync_to_kernel(*handle);
  }

  const Directory folder_;
  const std::string path_ = folder_ / "out";
  const buffers::SystemCalls plain_ = buffers::system_calls;
};

TEST_F(Errors, ClosingAReaderTakesNoErrorFromTheWriter) {
  buffers::Handle* writer = open(O_WRONLY);
  buffers::Handle* reader = open(O_RDONLY);
  fail(writer);
  EXPECT_EQ(buffers::close(*reader, -1), 0);
  EXPECT_EQ(buffers::close(*writer, -1), -ENOSPC);
}

TEST_F(Errors, EachHandleReportsAnErrorOnce) {
  buffers::Handle* first = open(O_WRONLY);
  buffers::Handle* second = open(O_WRONLY);
  fail(first);
  EXPECT_EQ(buffers::flush(*second), -ENOSPC) << "its flush concerns all bytes of the file";
  EXPECT_EQ(buffers::flush(*second), 0);
  EXPECT_EQ(write(first, "more"), -ENOSPC);
  EXPECT_EQ(buffers::close(*first, -1), 0);
  EXPECT_EQ(buffers::close(*second, -1), 0);
}

TEST_F(Errors, ANewHandleReportsAnErrorThatNoneHasReported) {
  buffers::Handle* first = open(O_WRONLY);
  fail(first);
  buffers::Handle* second = open(O_WRONLY);
  EXPECT_EQ(buffers::close(*second, -1), -ENOSPC);
  buffers::Handle* third = open(O_WRONLY);
  EXPECT_EQ(buffers::close(*third, -1), 0);
  EXPECT_EQ(buffers::close(*first, -1), -ENOSPC);
}

TEST_F(Errors, ClosingOneOfTwoDescriptorsKeepsTheErrorForTheOther) {
  buffers::Handle* handle = open(O_WRONLY);
  buffers::add_reference(*handle);
  fail(handle);
  const int other = ::open(path_.c_str(), O_WRONLY);
  EXPECT_EQ(buffers::close(*handle, other), 0);
  EXPECT_EQ(buffers::close(*handle, -1), -ENOSPC);
  ::close(other);
}

/// Appends, while a signal arrives during the system call.
[[noreturn]] void append_and_end(buffers::Handle* handle) {
  signal(SIGTERM, [](int) {
    buffers::flush_in_signal_handler();
    _exit(7);
  });
  buffers::system_calls.write = [](int descriptor, const void* data, std::size_t size) {
    const long written = base::system_call(SYS_write, descriptor, data, size);
    raise(SIGTERM);
    return written;
  };
  const iovec line{const_cast<char*>("line\n"), 5};
  buffers::write(*handle, {&line, 1}, {});
  buffers::write(*handle, {&line, 1}, {});
  buffers::flush(*handle);
  _exit(1);
}

TEST_F(Errors, AProcessThatASignalEndsAppendsNoByteTwice) {
  int status = 0;
  const pid_t child = ::fork();
  if (child == 0) append_and_end(open(O_WRONLY | O_APPEND));
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  EXPECT_EQ(pario::read_file(path_), "line\nline\n");
}

}  // namespace
