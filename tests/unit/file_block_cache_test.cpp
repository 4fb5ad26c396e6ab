// Blocks of objects in a directory of the node: fetched once, checked, bounded, safe after a kill.
#include "core/file/block_cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "directory.hpp"

namespace pario::file {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBlock = BlockCache::kBlock;

class Blocks : public testing::Test {
 protected:
  static std::byte byte_at(std::uint64_t offset) { return std::byte(offset * 31 >> 7 & 0xff); }
  BlockCache::Fetch fetch = [this](std::uint64_t offset, std::span<std::byte> out) {
    ++fetches;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = byte_at(offset + i);
    return base::Status();
  };
  /// True if the bytes are right.
  bool read(BlockCache& cache, std::uint64_t offset, std::uint64_t length) {
    std::vector<std::byte> out(length);
    if (!cache.read("s3://b/k", facts, offset, out, fetch).ok()) return false;
    for (std::uint64_t i = 0; i < length; ++i)
      if (out[i] != byte_at(offset + i)) return false;
    return true;
  }
  std::vector<fs::path> blocks() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(scratch.path()))
      if (entry.path().extension() == ".block") found.push_back(entry.path());
    return found;
  }
  std::uint64_t sum() const {
    std::uint64_t sum = 0;
    for (const fs::path& block : blocks()) {
      std::error_code removed;
      const std::uint64_t size = fs::file_size(block, removed);
      if (!removed) sum += size;
    }
    return sum;
  }

  Directory scratch;
  ObjectFacts facts{.size = 20 * kBlock + 5000, .version = "v1"};
  std::atomic<int> fetches = 0;
};

TEST_F(Blocks, ABlockIsFetchedOnceForAllCachesOfTheDirectory) {
  BlockCache one(scratch.path(), 100 * kBlock), other(scratch.path(), 100 * kBlock);
  EXPECT_TRUE(read(one, kBlock - 10, 20));
  EXPECT_EQ(fetches, 2);
  EXPECT_TRUE(read(other, 5, 2 * kBlock - 5));
  EXPECT_TRUE(read(one, 20 * kBlock + 100, 4900));  // the short block at the end
  EXPECT_TRUE(read(other, 20 * kBlock, 5000));
  EXPECT_EQ(fetches, 3);
}

TEST_F(Blocks, AnotherVersionHasOtherBlocks) {
  BlockCache cache(scratch.path(), 100 * kBlock);
  EXPECT_TRUE(read(cache, 0, 10));
  facts.version = "v2";
  EXPECT_TRUE(read(cache, 0, 10));
  facts.version.clear();  // a change could not be noticed
  EXPECT_TRUE(read(cache, 0, 10));
  EXPECT_TRUE(read(cache, 0, 10));
  EXPECT_EQ(fetches, 4);
}

TEST_F(Blocks, ADamagedBlockIsFetchedAgain) {
  BlockCache cache(scratch.path(), 100 * kBlock);
  EXPECT_TRUE(read(cache, 0, 10));
  for (const std::uint64_t damaged : {std::uint64_t{5}, kBlock + 3}) {  // data, checksums
    std::fstream file(blocks()[0], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(damaged)).put('?');
    file.close();
    EXPECT_TRUE(read(cache, 0, 10));
  }
  fs::resize_file(blocks()[0], 100);
  EXPECT_TRUE(read(cache, 0, 10));
  EXPECT_EQ(fetches, 4);
}

TEST_F(Blocks, TheSumOfAllBlocksIsBounded) {
  const std::uint64_t most = 5 * kBlock;
  BlockCache one(scratch.path(), most), other(scratch.path(), most);
  std::vector<std::jthread> threads;
  std::atomic<bool> right = true;
  for (unsigned first = 0; first < 4; ++first)
    threads.emplace_back([&, first] {
      for (std::uint64_t block = first; block < 20; block += 4) {
        if (!read(first % 2 == 0 ? one : other, block * kBlock, 10)) right = false;
        if (sum() > most) right = false;
      }
    });
  threads.clear();
  EXPECT_TRUE(right);
  EXPECT_EQ(fetches, 20);
  EXPECT_GE(blocks().size(), 3U);
}

TEST_F(Blocks, TheLeastRecentlyUsedBlocksAreRemoved) {
  BlockCache cache(scratch.path(), 4 * kBlock + 4096);
  for (std::uint64_t block = 0; block < 4; ++block) EXPECT_TRUE(read(cache, block * kBlock, 1));
  const auto hours = [](int n) { return fs::file_time_type::clock::now() - std::chrono::hours(n); };
  for (const fs::path& path : blocks()) fs::last_write_time(path, hours(2));
  EXPECT_TRUE(read(cache, 2 * kBlock, 1));  // notes the use
  EXPECT_TRUE(read(cache, 9 * kBlock, 1));
  fetches = 0;
  EXPECT_TRUE(read(cache, 2 * kBlock, 1));
  EXPECT_TRUE(read(cache, 9 * kBlock, 1));
  EXPECT_EQ(fetches, 0);
}

TEST_F(Blocks, ThreadsFetchABlockOnce) {
  BlockCache one(scratch.path(), 100 * kBlock), other(scratch.path(), 100 * kBlock);
  const BlockCache::Fetch quick = fetch;
  fetch = [&](std::uint64_t offset, std::span<std::byte> out) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return quick(offset, out);
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] { EXPECT_TRUE(read(i % 2 == 0 ? one : other, 100, 10)); });
  }
  EXPECT_EQ(fetches, 1);
}

TEST_F(Blocks, AProcessThatIsKilledWhileItFetchesLocksNothing) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    BlockCache cache(scratch.path(), 100 * kBlock);
    std::byte out[1];
    static_cast<void>(
        cache.read("s3://b/k", facts, 0, out, [&](std::uint64_t, std::span<std::byte>) {
          if (::write(pipe[1], "x", 1) != 1) ::_exit(1);
          ::pause();
          return base::Status();
        }));
    ::_exit(0);
  }
  char began = 0;
  ASSERT_EQ(::read(pipe[0], &began, 1), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
  BlockCache cache(scratch.path(), 100 * kBlock);
  EXPECT_TRUE(read(cache, 0, 1));
  EXPECT_EQ(fetches, 1);
}

TEST_F(Blocks, AChildForkedDuringAFetchLocksNothing) {
  BlockCache cache(scratch.path(), 100 * kBlock);
  pid_t child = -1;
  const BlockCache::Fetch fork_and_fail = [&](std::uint64_t, std::span<std::byte>) {
    child = ::fork();
    if (child == 0) ::pause();
    return base::Status(base::Error{.number = EIO, .operation = "read"});
  };
  std::byte out[1];
  EXPECT_FALSE(cache.read("s3://b/k", facts, 0, out, fork_and_fail).ok());
  const pid_t reader = ::fork();
  if (reader == 0) {
    ::alarm(20);
    ::_exit(read(cache, 0, 1) ? 0 : 1);
  }
  int status = -1;
  ::waitpid(reader, &status, 0);
  EXPECT_EQ(status, 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(Blocks, RemainsOfKilledProcessesAreRemoved) {
  const std::string remains = part_path(scratch.path() + "/a.block", part_number(1));
  std::ofstream(remains) << "x";
  BlockCache cache(scratch.path(), 100 * kBlock);
  EXPECT_TRUE(read(cache, 0, 1));
  EXPECT_FALSE(fs::exists(remains));
}

TEST_F(Blocks, PartsThatAreBeingWrittenAreWithinTheLimit) {
  const std::uint64_t most = 6 * kBlock;
  std::vector<Publication> parts;
  for (int process = 0; process < 3; ++process) {
    base::Result<Publication> part =
        Publication::of_file(scratch.path() + "/x" + std::to_string(process) + ".block");
    ASSERT_TRUE(part.ok());
    ASSERT_EQ(::ftruncate(part->descriptor(), kBlock), 0);
    parts.push_back(std::move(*part));
  }
  for (int restart = 0; restart < 3; ++restart) {
    BlockCache cache(scratch.path(), most);
    for (std::uint64_t block = 0; block < 20; ++block) {
      EXPECT_TRUE(read(cache, block * kBlock, 10));
      EXPECT_LE(sum() + 3 * kBlock, most);
    }
  }
  EXPECT_GE(blocks().size(), 1U);
}

TEST_F(Blocks, TheVariableNamesDirectoryAndSize) {
  const auto parse = [&](const std::string& text) {
    ::setenv("PARIO_BLOCK_CACHE", text.c_str(), 1);
    auto cache = BlockCache::of_environment();
    ::unsetenv("PARIO_BLOCK_CACHE");
    if (!cache.ok()) return "EINVAL " + cache.error().path;
    return *cache ? (*cache)->directory() + " " + std::to_string((*cache)->most()) : "none";
  };
  const std::string directory = scratch.path();
  EXPECT_EQ(parse(""), "none");
  EXPECT_EQ(parse(directory), directory + " 10737418240");
  EXPECT_EQ(parse(directory + ":4M"), directory + " 4194304");
  EXPECT_EQ(parse(directory + ":a/b"), directory + ":a/b 10737418240");
  for (const char* bad : {":", ":20X", ":0", ":1M", ":-3G", ":much"})
    EXPECT_EQ(parse(directory + bad), "EINVAL " + directory + bad);
  EXPECT_EQ(parse(":4M"), "EINVAL :4M");
}

TEST_F(Blocks, ADirectoryThatCannotBeWrittenIsNoError) {
  BlockCache cache("/proc/none", 100 * kBlock);
  EXPECT_TRUE(read(cache, 0, 10));
}

TEST_F(Blocks, AnErrorOfTheStoreIsReturned) {
  BlockCache cache(scratch.path(), 100 * kBlock);
  fetch = [](std::uint64_t, std::span<std::byte>) {
    return base::Status(base::Error{.number = ESTALE, .operation = "read"});
  };
  std::byte out[1];
  EXPECT_EQ(cache.read("s3://b/k", facts, 0, out, fetch).error().number, ESTALE);
  EXPECT_TRUE(blocks().empty());
}

}  // namespace
}  // namespace pario::file
