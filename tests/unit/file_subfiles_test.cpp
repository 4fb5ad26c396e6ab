// Files that consist of subfiles: finding, truncating, removing and joining them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "core/file/file.hpp"
#include "directory.hpp"
#include "read_file.hpp"
#include "striping.hpp"

namespace {

/// Calls of pread(2) that a signal interrupts.
int interrupted_reads = 0;

}  // namespace

/// Replaces that of the C library.
extern "C" ssize_t pread(int descriptor, void* bytes, size_t size, off_t offset) {
  if (interrupted_reads > 0) {
    --interrupted_reads;
    errno = EINTR;
    return -1;
  }
  return ::syscall(SYS_pread64, descriptor, bytes, size, offset);
}

namespace pario::file {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::uint64_t kUnit = 4096;
constexpr std::uint32_t kFiles = 4;

Bytes subfile_pattern(std::size_t length) {
  Bytes data(length);
  for (std::size_t i = 0; i < length; ++i) data[i] = static_cast<std::byte>(i * 5 + i / kUnit + 1);
  return data;
}

/// The open descriptors of this process that refer to a file.
long count_descriptors(const std::string& path) {
  return std::ranges::count_if(std::filesystem::directory_iterator("/proc/self/fd"),
                               [&](const auto& entry) {
                                 std::error_code gone;
                                 return std::filesystem::read_symlink(entry.path(), gone) == path;
                               });
}

class Subfiles : public testing::Test {
 protected:
  std::unique_ptr<File> open_file(int flags, std::uint32_t subfiles = 1) {
    auto file = open(
        {.path = path, .flags = flags, .striping = make_striping(kUnit), .subfiles = subfiles});
    EXPECT_TRUE(file.ok()) << file.error().text();
    return file.ok() ? std::move(*file) : nullptr;
  }
  void make(const Bytes& data) {
    ASSERT_TRUE(open_file(O_RDWR | O_CREAT, kFiles)->write(0, data).ok());
  }
  Bytes contents() {
    const auto file = open_file(O_RDONLY);
    Bytes data(file->size().value());
    EXPECT_EQ(file->read(0, data).value(), data.size());
    return data;
  }
  /// Reads the contents like a program without pario.
  Bytes contents_for_everybody() {
    const std::string text = read_file(path);
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path()))
      found.push_back(entry.path().lexically_relative(directory.path()));
    std::ranges::sort(found);
    return found;
  }

  const Directory directory;
  const std::string path = directory / "file";
};

TEST_F(Subfiles, AreFoundWhateverTheHint) {
  make(subfile_pattern(100'000));
  EXPECT_EQ(contents(), subfile_pattern(100'000));
  EXPECT_EQ(open_file(O_RDWR)->layout().targets, kFiles);
  EXPECT_EQ(open_file(O_RDWR | O_CREAT, 7)->layout().targets, kFiles);
}

TEST_F(Subfiles, HoldUnitsInTurn) {
  make(subfile_pattern(3 * kUnit));
  EXPECT_EQ(names(),
            (std::vector<std::string>{"file", "file.subfiles", "file.subfiles/0", "file.subfiles/1",
                                      "file.subfiles/2", "file.subfiles/map"}));
  EXPECT_EQ(std::filesystem::file_size(path), 0U);
}

TEST_F(Subfiles, AreFoundDespiteSignals) {
  make(subfile_pattern(100'000));
  interrupted_reads = 1;  // of the map
  EXPECT_EQ(contents(), subfile_pattern(100'000));
  EXPECT_EQ(interrupted_reads, 0);
}

TEST_F(Subfiles, AreEmptiedByTruncation) {
  make(subfile_pattern(100'000));
  EXPECT_EQ(open_file(O_RDWR | O_TRUNC)->size().value(), 0U);
  EXPECT_EQ(contents(), Bytes());
}

TEST_F(Subfiles, OfAFileThatOthersRemovedAreNotFoundAgain) {
  make(subfile_pattern(100'000));
  std::filesystem::remove(path);
  EXPECT_EQ(open_file(O_RDWR | O_CREAT)->size().value(), 0U);
  EXPECT_EQ(names(), std::vector<std::string>{"file"});
}

TEST_F(Subfiles, DoNotChangeAFileThatExists) {
  ASSERT_TRUE(open_file(O_RDWR | O_CREAT)->write(0, subfile_pattern(10)).ok());
  const auto file = open_file(O_RDWR | O_CREAT, kFiles);
  EXPECT_EQ(file->layout().targets, 1U);
  EXPECT_EQ(names(), std::vector<std::string>{"file"});
}

TEST_F(Subfiles, AreRemovedWithTheFile) {
  make(subfile_pattern(100'000));
  ASSERT_TRUE(remove(path).ok());
  EXPECT_TRUE(names().empty());
}

TEST_F(Subfiles, RemovalLeavesFilesOfOthersAlone) {
  std::filesystem::create_directory(path + ".subfiles");
  std::ofstream(path + ".subfiles/mine") << "keep";
  make(subfile_pattern(10));
  ASSERT_TRUE(remove(path).ok());
  EXPECT_EQ(names(), (std::vector<std::string>{"file.subfiles", "file.subfiles/mine"}));
}

TEST_F(Subfiles, AreAllSyncedByAHandleThatHasWrittenNone) {
  const auto writer = open_file(O_RDWR | O_CREAT, kFiles), other = open_file(O_RDWR);
  ASSERT_TRUE(writer->write(kUnit, subfile_pattern(2 * kUnit)).ok());
  const auto before = names();
  EXPECT_EQ(count_descriptors(path + ".subfiles/2"), 1);
  ASSERT_TRUE(other->sync().ok());
  EXPECT_EQ(count_descriptors(path + ".subfiles/2"), 2) << "a file is opened to be synced";
  EXPECT_EQ(names(), before);
}

TEST_F(Subfiles, JoinMakesOneFileForEverybody) {
  const Bytes data = subfile_pattern(100'001);
  make(data);
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  std::uint64_t done = 0, whole = 0;
  const auto status =
      join(path, [&](std::uint64_t now, std::uint64_t all) { done = now, whole = all; });
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(contents_for_everybody(), data);
  EXPECT_EQ(contents(), data);
  EXPECT_EQ(names(), std::vector<std::string>{"file"});
  EXPECT_EQ(done, data.size());
  EXPECT_EQ(whole, data.size());
  struct stat facts{};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0640U);
}

TEST_F(Subfiles, JoinKeepsHoles) {
  const std::uint64_t far = std::uint64_t{1} << 40;
  ASSERT_TRUE(open_file(O_RDWR | O_CREAT, kFiles)->write(far, subfile_pattern(10'000)).ok());
  ASSERT_TRUE(join(path).ok());
  const auto file = open_file(O_RDONLY);
  EXPECT_EQ(file->size().value(), far + 10'000);
  Bytes data(10'000);
  EXPECT_EQ(file->read(far, data).value(), data.size());
  EXPECT_EQ(data, subfile_pattern(10'000));
  struct stat facts{};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_LT(facts.st_blocks * 512, 1 << 20);
}

TEST_F(Subfiles, AreNotJoinedWhileSomebodyHasThemOpen) {
  make(subfile_pattern(100'000));
  const auto file = open_file(O_RDONLY);
  EXPECT_EQ(join(path).error().number, EBUSY);
  EXPECT_EQ(contents(), subfile_pattern(100'000));
  EXPECT_TRUE(file->close().ok());
  EXPECT_TRUE(join(path).ok());
}

TEST_F(Subfiles, OpenedWhileTheyAreJoinedAreOneFile) {
  make(subfile_pattern(100'000));
  std::thread opener;
  std::unique_ptr<File> file;
  const auto status = join(path, [&](std::uint64_t, std::uint64_t) {
    if (!opener.joinable()) opener = std::thread([&] { file = open_file(O_RDWR); });
  });
  ASSERT_TRUE(status.ok()) << status.error().text();
  opener.join();
  EXPECT_EQ(file->subfiles(), 1U);
  EXPECT_EQ(file->size().value(), 100'000U);
}

TEST_F(Subfiles, JoinBySharingMovesNothing) {
  const Bytes data = subfile_pattern(100'000);
  make(data);
  const auto status = join(path, {}, Joining::by_sharing);
  if (status.ok()) {
    EXPECT_EQ(contents_for_everybody(), data);
  } else {
    EXPECT_EQ(status.error().number, EOPNOTSUPP) << status.error().text();
    EXPECT_EQ(names().size(), 2 + 1 + kFiles) << "nothing is left of the attempt";
  }
  EXPECT_EQ(contents(), data);
}

/// The error of opening a file all of whose bytes are required.
base::Status open_complete(const std::string& path, int flags = O_RDONLY) {
  const auto file = open({.path = path, .flags = flags, .require_complete = true});
  return file.ok() ? base::Status() : file.status();
}

TEST_F(Subfiles, MustAllBeThereOnceTheSizeIsRecorded) {
  for (const char* lost : {"0", "1", "2"}) {
    make(subfile_pattern(3 * kUnit));
    ASSERT_TRUE(record_size(path).ok());
    EXPECT_TRUE(open_complete(path).ok());
    std::filesystem::remove(path + ".subfiles/" + lost);
    const base::Status status = open_complete(path);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().number, EIO);
    EXPECT_EQ(status.error().path, path + ".subfiles/" + lost);
    EXPECT_EQ(open_joined_copy(path, 0).error().number, EIO);
    EXPECT_EQ(join(path, {}, Joining::if_complete).error().number, EIO);
    ASSERT_TRUE(remove(path).ok());
  }
}

TEST_F(Subfiles, MayNotBeCutOnceTheSizeIsRecorded) {
  make(subfile_pattern(3 * kUnit));
  ASSERT_TRUE(record_size(path).ok());
  std::filesystem::resize_file(path + ".subfiles/2", kUnit - 1);
  EXPECT_EQ(open_complete(path, O_RDWR).error().number, EIO);
  EXPECT_TRUE(open_complete(path, O_RDWR | O_TRUNC).ok()) << "the old bytes do not matter";
  EXPECT_TRUE(open_complete(path).ok()) << "the recorded size is that of the empty file";
}

TEST_F(Subfiles, MayBeMissingBeforeTheSizeIsRecorded) {
  make(subfile_pattern(3 * kUnit));
  std::filesystem::remove(path + ".subfiles/1");
  EXPECT_TRUE(open_complete(path).ok());
}

TEST_F(Subfiles, AreExtendedOverHolesWhenTheSizeIsRecorded) {
  ASSERT_TRUE(open_file(O_RDWR | O_CREAT, kFiles)->write(2 * kUnit, subfile_pattern(10)).ok());
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const Bytes before = contents();
  ASSERT_TRUE(record_size(path).ok());
  EXPECT_EQ(contents(), before);
  EXPECT_TRUE(open_complete(path).ok());
  EXPECT_EQ(std::filesystem::file_size(path + ".subfiles/0"), kUnit);
  EXPECT_EQ(std::filesystem::status(path + ".subfiles/0").permissions(),
            std::filesystem::perms(0640));
}

TEST_F(Subfiles, MayBecomeShorterAfterTheSizeIsRecorded) {
  make(subfile_pattern(3 * kUnit));
  ASSERT_TRUE(record_size(path).ok());
  ASSERT_TRUE(open_file(O_RDWR)->resize(kUnit + 1).ok());
  EXPECT_TRUE(open_complete(path).ok());
  std::filesystem::resize_file(path + ".subfiles/1", 0);
  EXPECT_EQ(open_complete(path).error().number, EIO) << "the shorter size counts";
}

TEST_F(Subfiles, HaveNoRecordedSizeWhileSomebodyHasThemOpen) {
  make(subfile_pattern(3 * kUnit));
  const auto file = open_file(O_RDWR);
  EXPECT_EQ(record_size(path).error().number, EWOULDBLOCK);
}

TEST_F(Subfiles, JoinOfAnOrdinaryFileIsAnError) {
  ASSERT_TRUE(open_file(O_RDWR | O_CREAT)->write(0, subfile_pattern(10)).ok());
  EXPECT_EQ(join(path).error().number, EINVAL);
  EXPECT_EQ(contents(), subfile_pattern(10));
}

}  // namespace
}  // namespace pario::file
