// Several handles of one file: what one reads to write it back must not undo what another writes meanwhile.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>

#include "engine_support.hpp"

namespace pario::engine {
namespace {

constexpr std::uint64_t kPiece = 100, kPieces = 50;

/// Asks `decide` before each call on the file.
Opener asking(const std::function<storage::Fault(std::string_view operation)>& decide) {
  return [=](const storage::OpenRequest& request) -> base::Result<std::unique_ptr<storage::File>> {
    auto file = storage::open(request);
    if (!file) return file;
    return storage::make_faulty(std::move(*file), [=](const char* operation, base::Extent) { return decide(operation); });
  };
}

/// Calls `before_write` once, when bytes are about to be written.
Opener interrupted(const std::function<void()>& before_write) {
  const auto once = std::make_shared<std::once_flag>();
  return asking([=](std::string_view operation) {
    if (operation == "write") std::call_once(*once, before_write);
    return storage::Fault{};
  });
}

OpenRequest sieving(const std::string& path) {
  OpenRequest request = fresh(path);
  request.flags = O_RDWR | O_CREAT;
  request.hints.romio_ds_write = hints::Choice::enable;
  request.hints.romio_cb_write = hints::Choice::enable;
  return request;
}

/// Every second piece of the file, from the first on.
base::Status write_pieces(SharedFile& file, With with, int part = 0, int parts = 1) {
  std::vector<std::byte> buffer(kPiece * kPieces / static_cast<std::uint64_t>(parts));
  pattern::Access access = plain(buffer, 0);
  access.view = dealt(2 * part, 2 * parts, kPiece);
  fill(access);
  return file.write(access, with, "write").status();
}

/// The hole between the first two of them.
base::Status write_hole(SharedFile& file) {
  std::vector<std::byte> buffer = bytes_at(kPiece, kPiece);
  return file.write(plain(buffer, kPiece), With::alone, "write_at").status();
}

std::unique_ptr<SharedFile> opened(const std::string& path, int flags = O_RDWR | O_CREAT) {
  OpenRequest request = sieving(path);
  request.flags = flags;
  auto file = SharedFile::open(comm::make_self(), request);
  EXPECT_TRUE(file.ok());
  return std::move(*file);
}

void expect_pieces_and_hole(const std::string& path) {
  const auto found = contents(path);
  ASSERT_GE(found.size(), 3 * kPiece);
  EXPECT_EQ(std::vector(found.begin(), found.begin() + 3 * kPiece), bytes_at(0, 3 * kPiece));
}

TEST(EngineHandles, AHandleThatIsAloneSieves) {
  const Directory directory;
  const auto file = opened(directory / "alone");
  EXPECT_OK(write_pieces(*file, With::alone));
  EXPECT_GT(file->statistics().tally.modified, 0u);
  EXPECT_OK(file->close());
}

TEST(EngineHandles, NothingIsWrittenBackWhileAnotherHandleMayWrite) {
  const Directory directory;
  const std::string path = directory / "two";
  const auto other = opened(path);
  EXPECT_OK(other->resize(1'000));
  auto file = SharedFile::open_with(comm::make_self(), sieving(path), interrupted([&] { EXPECT_OK(write_hole(*other)); }));
  ASSERT_TRUE(file.ok());
  EXPECT_OK(write_pieces(**file, With::alone));
  EXPECT_EQ((*file)->statistics().sieved_calls, 0u);
  EXPECT_OK(other->close());
  expect_pieces_and_hole(path);
  EXPECT_OK(write_pieces(**file, With::alone));
  EXPECT_EQ((*file)->statistics().sieved_calls, 1u) << "alone again";
  EXPECT_OK((*file)->close());
  expect_pieces_and_hole(path);
}

TEST(EngineHandles, ReadersAreNoReason) {
  const Directory directory;
  const auto file = opened(directory / "read");
  const auto other = opened(directory / "read", O_RDONLY);
  EXPECT_OK(write_pieces(*file, With::alone));
  EXPECT_EQ(file->statistics().sieved_calls, 1u);
  EXPECT_OK(other->close());
  EXPECT_OK(file->close());
}

TEST(EngineHandles, WithoutLocksNothingIsWrittenBack) {
  const Directory directory;
  const Opener without = asking([](std::string_view operation) {
    return operation == "lock" ? storage::Fault{storage::Fault::Kind::error, ENOLCK} : storage::Fault{};
  });
  auto file = SharedFile::open_with(comm::make_self(), sieving(directory / "none"), without);
  ASSERT_TRUE(file.ok()) << file.error().text();
  EXPECT_OK(write_pieces(**file, With::alone));
  EXPECT_EQ((*file)->statistics().sieved_calls, 0u);
  EXPECT_OK((*file)->close());
}

TEST(EngineHandles, AStrangersLockKeepsNobodyFromOpening) {
  const Directory directory;
  const std::string path = directory / "strange";
  std::ofstream(path) << "old";
  const int stranger = ::open(path.c_str(), O_RDWR);
  struct flock all{};
  all.l_type = F_WRLCK;
  all.l_whence = SEEK_SET;
  ASSERT_EQ(::fcntl(stranger, F_SETLK, &all), 0);
  const auto file = opened(path);
  EXPECT_OK(write_pieces(*file, With::alone));
  EXPECT_EQ(file->statistics().sieved_calls, 0u);
  EXPECT_OK(file->close());
  ::close(stranger);
}

TEST(EngineHandles, WhoOpensWhileOthersWriteBackWaitsForThem) {
  const Directory directory;
  const std::string path = directory / "late";
  std::thread late;
  const auto open_and_write = [&] {
    late = std::thread([&] {
      const auto other = opened(path);
      EXPECT_OK(write_hole(*other));
      EXPECT_OK(other->close());
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // time enough to do harm
  };
  auto file = SharedFile::open_with(comm::make_self(), sieving(path), interrupted(open_and_write));
  ASSERT_TRUE(file.ok());
  EXPECT_OK(write_pieces(**file, With::alone));
  late.join();
  EXPECT_OK((*file)->close());
  expect_pieces_and_hole(path);
}

TEST(EngineHandles, CollectiveWindowsAreNotWrittenBackEither) {
  const Directory directory;
  const std::string path = directory / "together";
  const auto other = opened(path);
  EXPECT_OK(other->resize(1'000'000));
  const std::vector<int> nodes{0, 0, 1};
  const auto all_write = [&](const Opener& opener) {
    std::atomic<std::uint64_t> modified = 0;
    comm::run_as_threads(nodes, [&](const std::shared_ptr<comm::Comm>& ranks) {
      auto file = SharedFile::open_with(ranks, sieving(path), opener);
      ASSERT_TRUE(file.ok());
      EXPECT_OK(write_pieces(**file, With::together, ranks->rank(), ranks->size()));
      modified += (*file)->statistics().tally.modified;
      EXPECT_OK((*file)->close());
    });
    return modified.load();
  };
  const Opener opener = interrupted([&] { EXPECT_OK(write_hole(*other)); });
  EXPECT_EQ(all_write(opener), 0u);
  EXPECT_OK(other->close());
  expect_pieces_and_hole(path);
  EXPECT_GT(all_write(opener), 0u) << "alone";
  expect_pieces_and_hole(path);
}

}  // namespace
}  // namespace pario::engine
