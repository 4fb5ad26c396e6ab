// Files of the kernel: descriptors, limits, locks, striping.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "core/file/file.hpp"
#include "directory.hpp"
#include "striping.hpp"

namespace pario::file {
namespace {

using Bytes = std::vector<std::byte>;

class Posix : public testing::Test {
 protected:
  std::unique_ptr<File> open_file(int flags = O_RDWR | O_CREAT) {
    auto file = open({.path = path, .flags = flags});
    EXPECT_TRUE(file.ok()) << file.error().text();
    return file.ok() ? std::move(*file) : nullptr;
  }

  const Directory directory;
  const std::string path = directory / "file";
};

/// Runs `body` in a child process; returns its result.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Lists the descriptors of this process that name `path`.
std::vector<int> descriptors_of(const std::string& path) {
  std::vector<int> found;
  for (int descriptor = 0; descriptor < 256; ++descriptor) {
    char target[PATH_MAX] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    if (::readlink(link.c_str(), target, sizeof target - 1) > 0 && path == target)
      found.push_back(descriptor);
  }
  return found;
}

TEST_F(Posix, ErrorsOfOpenNameThePath) {
  const auto file = open({.path = directory / "missing", .flags = O_RDWR});
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().text(),
            "open " + directory.path() + "/missing: ENOENT (No such file or directory)");
}

TEST_F(Posix, DescriptorsAreClosedByExec) {
  const auto file = open_file();
  const auto found = descriptors_of(path);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(::fcntl(found[0], F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(Posix, DescriptorsAreNoneOfTheStandardThree) {
  const int result = in_child([this] {
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    const auto file = open({.path = path, .flags = O_RDWR | O_CREAT});
    const auto found = descriptors_of(path);
    return found.size() == 1 && found[0] > STDERR_FILENO ? 0 : 1;
  });
  EXPECT_EQ(result, 0);
}

TEST_F(Posix, CloseGivesTheDescriptorBackOnce) {
  const auto file = open_file();
  EXPECT_TRUE(file->close().ok());
  EXPECT_TRUE(descriptors_of(path).empty());
  EXPECT_EQ(file->close().error().number, EBADF);
}

TEST_F(Posix, WritesGoWhereTheyAreToldToEvenWithAppend) {
  const auto file = open_file(O_RDWR | O_CREAT | O_APPEND);
  ASSERT_TRUE(file->write(0, Bytes(10)).ok());
  ASSERT_TRUE(file->write(0, Bytes(5)).ok());
  EXPECT_EQ(file->size().value(), 10U);
}

TEST_F(Posix, WritingAReadOnlyFileIsAnError) {
  open_file();
  EXPECT_EQ(open_file(O_RDONLY)->write(0, Bytes(1)).error().number, EBADF);
}

TEST_F(Posix, TheLimitOfFileSizesIsEfbig) {
  const int result = in_child([this] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{8192, 8192};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto file = open({.path = path, .flags = O_RDWR | O_CREAT});
    const auto written = file.value()->write(4096, Bytes(10'000));
    const bool as_expected = !written.ok() && written.error().number == EFBIG &&
                             written.error().detail == "after 4096 bytes" &&
                             file.value()->resize(10'000).error().number == EFBIG;
    return as_expected ? 0 : 1;
  });
  EXPECT_EQ(result, 0);
}

TEST_F(Posix, AFullDeviceIsEnospc) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  auto file = open({.path = "/dev/full", .flags = O_RDWR});
  EXPECT_EQ(file.value()->write(0, Bytes(10)).error().number, ENOSPC);
}

TEST_F(Posix, PreallocatingMoreThanThereIsIsEnospc) {
  const auto file = open_file();
  EXPECT_EQ(file->preallocate(std::uint64_t{1} << 53).error().number, ENOSPC);
  struct stat facts{};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_blocks, 0) << "what is too much is not even begun";
}

TEST_F(Posix, PreallocatingReservesBlocks) {
  const auto file = open_file();
  ASSERT_TRUE(file->preallocate(1 << 20).ok());
  struct stat facts{};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_GE(facts.st_blocks * 512, 1 << 20);
}

TEST_F(Posix, MovesMoreThanTwoToThe31BytesInOneCall) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer looks at every byte of a write";
#endif
  // The kernel moves at most 0x7ffff000 bytes at a time, and /dev/null never looks at them: the
  // memory need not be there.
  constexpr std::uint64_t kLength = (std::uint64_t{1} << 32) + 4096;
  void* memory =
      ::mmap(nullptr, kLength, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto file = open({.path = "/dev/null", .flags = O_WRONLY});
  const int raw = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(::pwrite(raw, memory, kLength, 0), 0x7ffff000);
  ::close(raw);
  EXPECT_TRUE(file.value()->write(0, {static_cast<std::byte*>(memory), kLength}).ok());
  ::munmap(memory, kLength);
}

TEST_F(Posix, ExclusiveLocksKeepOtherOpenersOut) {
  const auto file = open_file();
  ASSERT_TRUE(file->lock({100, 200}, true).ok());
  const int other = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct flock wanted{};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = 150;
  wanted.l_len = 10;
  EXPECT_EQ(::fcntl(other, F_OFD_SETLK, &wanted), -1);
  wanted.l_start = 200;
  wanted.l_pid = 0;
  EXPECT_EQ(::fcntl(other, F_OFD_SETLK, &wanted), 0);
  ASSERT_TRUE(file->unlock({100, 200}).ok());
  wanted.l_start = 150;
  EXPECT_EQ(::fcntl(other, F_OFD_SETLK, &wanted), 0);
  ::close(other);
}

TEST_F(Posix, LocksSurviveThatTheProcessClosesAnotherDescriptorOfTheFile) {
  const auto file = open_file();
  ASSERT_TRUE(file->lock({0, 10}, true).ok());
  ::close(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  const int other = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct flock wanted{};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_len = 10;
  EXPECT_EQ(::fcntl(other, F_OFD_SETLK, &wanted), -1);
  ::close(other);
}

TEST_F(Posix, TryingALockSaysWhetherSomebodyElseHasOne) {
  const auto first = open_file(), second = open_file();
  EXPECT_TRUE(*first->try_lock({100, 200}, true));
  EXPECT_FALSE(*second->try_lock({150, 160}, false));
  EXPECT_TRUE(*second->try_lock({200, 300}, true));
  ASSERT_TRUE(first->unlock({100, 200}).ok());
  EXPECT_TRUE(*first->try_lock({100, 200}, false));
  EXPECT_TRUE(*second->try_lock({150, 160}, false)) << "both share it";
}

TEST_F(Posix, SharedLocksWorkForFilesThatAreOnlyWritten) {
  const auto file = open_file(O_WRONLY | O_CREAT);
  EXPECT_TRUE(file->lock({0, 10}, false).ok());
}

TEST_F(Posix, KnowsKindAndBlockOfItsFileSystem) {
  const auto file = open_file();
  EXPECT_NE(file->layout().kind, layout::Kind::lustre);
  EXPECT_EQ(file->layout().targets, 1U);
  auto memory = open({.path = "/dev/shm/pario-storage-" + std::to_string(::getpid()),
                      .flags = O_RDWR | O_CREAT | O_EXCL});
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory.value()->layout().kind, layout::Kind::tmpfs);
  EXPECT_TRUE(remove(memory.value()->path()).ok());
}

TEST_F(Posix, StripingThatCannotBeIsReportedAndHarmless) {
  const OpenRequest request{
      .path = path, .flags = O_RDWR | O_CREAT, .striping = make_striping(1 << 20, 4)};
  auto file = open(request);
  ASSERT_TRUE(file.ok());
  const auto outcome = striping_outcome(request, **file);
  EXPECT_FALSE(outcome.supported);
  EXPECT_NE(outcome.reason.find("has no stripes"), std::string::npos) << outcome.reason;
  EXPECT_EQ(outcome.effective, file.value()->layout());
}

TEST_F(Posix, NothingIsSaidOfStripingThatNobodyAskedFor) {
  const OpenRequest request{.path = path, .flags = O_RDWR | O_CREAT};
  auto file = open(request);
  EXPECT_EQ(striping_outcome(request, **file).reason, "");
}

TEST_F(Posix, RemoveSaysWhenThereIsNothing) {
  open_file();
  EXPECT_TRUE(remove(path).ok());
  EXPECT_EQ(remove(path).error().number, ENOENT);
}

/// A file with a given layout.
StripingOutcome outcome_on(layout::StripeLayout layout, const OpenRequest& request) {
  return striping_outcome(request, *make_memory("pretend", layout));
}

TEST(StripingOutcome, SaysWhatDiffers) {
  const layout::StripeLayout lustre{layout::Kind::lustre, 1 << 20, 4};
  EXPECT_EQ(outcome_on(lustre, {.striping = make_striping(0, 100)}).reason,
            "asked for 100 targets, the file has 4");
  EXPECT_EQ(outcome_on(lustre, {.striping = make_striping(1 << 20, 4)}).reason, "");
  EXPECT_EQ(outcome_on(lustre, {.striping = make_striping(0, layout::kAllTargets)}).reason, "");
  EXPECT_EQ(outcome_on(lustre, {.striping = make_striping(100'000)}).reason,
            "asked for stripes of 100000 bytes, they have 1048576");
}

}  // namespace
}  // namespace pario::file
