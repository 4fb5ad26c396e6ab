// Several handles of one file: the read-modify-write of one must not undo a write of another.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>

#include "engine_support.hpp"
#include "parallel/engine/handle_locks.hpp"

namespace pario::engine {
namespace {

constexpr std::uint64_t kPiece = 100, kPieces = 50;

/// Opens a file that asks `decide` before each operation.
Opener asking(const std::function<file::Fault(std::string_view operation)>& decide) {
  return [=](const file::OpenRequest& request) -> base::Result<std::unique_ptr<file::File>> {
    auto file = file::open(request);
    if (!file) return file;
    return file::make_faulty(
        std::move(*file), [=](const char* operation, base::Extent) { return decide(operation); });
  };
}

/// Opens a file that calls `before_write` once, before its first write.
Opener call_before_write(const std::function<void()>& before_write) {
  const auto once = std::make_shared<std::once_flag>();
  return asking([=](std::string_view operation) {
    if (operation == "write") std::call_once(*once, before_write);
    return file::Fault{};
  });
}

OpenRequest sieving(const std::string& path) {
  OpenRequest request = fresh(path);
  request.flags = O_RDWR | O_CREAT;
  request.hints.romio_ds_write = hints::Choice::enable;
  request.hints.romio_cb_write = hints::Choice::enable;
  return request;
}

/// Writes every second piece of the file, from the first on.
base::Status write_pieces(SharedFile& file, With with, int part = 0, int parts = 1) {
  std::vector<std::byte> buffer(kPiece * kPieces / static_cast<std::uint64_t>(parts));
  pattern::Access access = plain(buffer, 0);
  access.view = make_alternating_view(2 * part, 2 * parts, kPiece);
  fill(access);
  return file.write(access, with, "write").status();
}

/// Writes the hole between the first two pieces.
base::Status write_hole(SharedFile& file) {
  std::vector<std::byte> buffer = bytes_at(kPiece, kPiece);
  return file.write(plain(buffer, kPiece), With::alone, "write_at").status();
}

std::unique_ptr<SharedFile> open_handle(const std::string& path, int flags = O_RDWR | O_CREAT) {
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
  const auto file = open_handle(directory / "alone");
  EXPECT_OK(write_pieces(*file, With::alone));
  EXPECT_GT(file->statistics().transfer.read_modify_writes, 0u);
  EXPECT_OK(file->close());
}

/// Opens a file that counts the calls on its locks.
Opener counting_locks(std::atomic<int>& locks, std::atomic<int>& unlocks) {
  return asking([&](std::string_view operation) {
    if (operation == "lock") ++locks;
    if (operation == "unlock") ++unlocks;
    return file::Fault{};
  });
}

file::OpenRequest new_file(const std::string& path) {
  return {.path = path, .flags = O_RDWR | O_CREAT};
}

TEST(EngineHandles, ASievedWriteTakesTwoLocks) {
  const Directory directory;
  std::atomic<int> locks = 0, unlocks = 0;
  const Opener counting = counting_locks(locks, unlocks);
  auto file = SharedFile::open(comm::make_self(), sieving(directory / "locks"), counting);
  ASSERT_TRUE(file.ok());
  locks = unlocks = 0;
  EXPECT_OK(write_pieces(**file, With::alone));
  EXPECT_EQ(locks, 2) << "the handles before and behind this one";
  EXPECT_EQ(unlocks, 3) << "the same, and the registration of handles";
}

TEST(EngineHandles, ManyReadModifyWritesKeepTheirLocks) {
  const Directory directory;
  constexpr std::uint64_t kNever = std::uint64_t{1} << 62;
  std::atomic<int> locks = 0, unlocks = 0;
  const auto file = counting_locks(locks, unlocks)(new_file(directory / "lease"));
  ASSERT_TRUE(file.ok());
  HandleLocks handles(**file, 7, {.uses_before = 3, .longest_ns = kNever, .idle_ns = kNever});
  const auto modify = [&](int times) {
    for (int i = 0; i < times; ++i) {
      EXPECT_TRUE(handles.try_begin());
      handles.end();
    }
  };
  modify(3);
  EXPECT_EQ(locks, 3 * 2);
  EXPECT_EQ(unlocks, 3 * 3);
  modify(100);
  EXPECT_EQ(locks, 4 * 2) << "the fourth one keeps them";
  EXPECT_EQ(unlocks, 3 * 3 + 1);
  handles.end_lease();
  EXPECT_EQ(unlocks, 4 * 3);
}

TEST(EngineHandles, ALeaseThatIsTooOldIsGivenBackAtOnce) {
  const Directory directory;
  std::atomic<int> locks = 0, unlocks = 0;
  const auto file = counting_locks(locks, unlocks)(new_file(directory / "old"));
  ASSERT_TRUE(file.ok());
  HandleLocks handles(**file, 7, {.uses_before = 0, .longest_ns = 0});
  EXPECT_TRUE(handles.try_begin());
  std::this_thread::sleep_for(std::chrono::microseconds(1));  // longer than longest_ns
  handles.end();
  EXPECT_EQ(unlocks, 3);
}

TEST(EngineHandles, AHandleRegistersWhenALeaseIsIdle) {
  const Directory directory;
  const file::OpenRequest request = new_file(directory / "idle");
  const auto file = file::open(request), other_file = file::open(request);
  ASSERT_TRUE(file.ok() && other_file.ok());
  HandleLocks handles(**file, 7, {.uses_before = 0, .idle_ns = 1'000'000});
  EXPECT_TRUE(handles.try_begin());
  handles.end();
  HandleLocks other(**other_file, 8);
  EXPECT_OK(other.register_writer(0));
  EXPECT_FALSE(handles.try_begin()) << "another handle may write";
}

TEST(EngineHandles, NothingIsWrittenBackWhileAnotherHandleMayWrite) {
  const Directory directory;
  const std::string path = directory / "two";
  const auto other = open_handle(path);
  EXPECT_OK(other->resize(1'000));
  auto file = SharedFile::open(comm::make_self(), sieving(path),
                               call_before_write([&] { EXPECT_OK(write_hole(*other)); }));
  ASSERT_TRUE(file.ok());
  EXPECT_OK(write_pieces(**file, With::alone));
  EXPECT_EQ((*file)->statistics().sieved, 0u);
  EXPECT_OK(other->close());
  expect_pieces_and_hole(path);
  EXPECT_OK(write_pieces(**file, With::alone));
  EXPECT_EQ((*file)->statistics().sieved, 1u) << "alone again";
  EXPECT_OK((*file)->close());
  expect_pieces_and_hole(path);
}

TEST(EngineHandles, ReadersAreNoReason) {
  const Directory directory;
  const auto file = open_handle(directory / "read");
  const auto other = open_handle(directory / "read", O_RDONLY);
  EXPECT_OK(write_pieces(*file, With::alone));
  EXPECT_EQ(file->statistics().sieved, 1u);
  EXPECT_OK(other->close());
  EXPECT_OK(file->close());
}

TEST(EngineHandles, WithoutLocksNothingIsWrittenBack) {
  const Directory directory;
  const Opener without = asking([](std::string_view operation) {
    return operation == "lock" ? file::Fault{file::Fault::Kind::error, ENOLCK} : file::Fault{};
  });
  auto file = SharedFile::open(comm::make_self(), sieving(directory / "none"), without);
  ASSERT_TRUE(file.ok()) << file.error().text();
  EXPECT_OK(write_pieces(**file, With::alone));
  EXPECT_EQ((*file)->statistics().sieved, 0u);
  EXPECT_OK((*file)->close());
}

TEST(EngineHandles, AHandleThatOthersCannotDetectIsNotOpened) {
  const Directory directory;
  const auto locks = std::make_shared<std::atomic<int>>(0);
  const Opener failing = asking([locks](std::string_view operation) {
    // The first lock is that of the registration, the second one that of the handle.
    return operation == "lock" && ++*locks == 2 ? file::Fault{file::Fault::Kind::error, ENOLCK}
                                                : file::Fault{};
  });
  const auto file = SharedFile::open(comm::make_self(), sieving(directory / "hidden"), failing);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().number, ENOLCK) << file.error().text();
}

TEST(EngineHandles, AFailedReadOfAHoleWithoutLocksWritesThePiecesAlone) {
  const Directory directory;
  const std::string path = directory / "lost";
  std::atomic<bool> has_failed = false;  // the server is lost with the first read
  const Opener failing = asking([&has_failed](std::string_view operation) {
    using Kind = file::Fault::Kind;
    if (operation == "read") has_failed = true;
    if (operation == "read") return file::Fault{Kind::error, EIO};
    return operation == "lock" && has_failed ? file::Fault{Kind::error, ENOLCK} : file::Fault{};
  });
  comm::run_as_threads(std::vector<int>{0, 0}, [&](const std::shared_ptr<comm::Comm>& ranks) {
    auto file = SharedFile::open(ranks, sieving(path), failing);
    ASSERT_TRUE(file.ok()) << file.error().text();
    EXPECT_OK(write_pieces(**file, With::alone, ranks->rank(), 2));
    EXPECT_OK((*file)->close());
  });
  EXPECT_TRUE(has_failed);
  EXPECT_OK(write_hole(*open_handle(path)));
  expect_pieces_and_hole(path);
}

TEST(EngineHandles, ALockOfAnotherProgramDoesNotBlockOpening) {
  const Directory directory;
  const std::string path = directory / "strange";
  std::ofstream(path) << "old";
  const int stranger = ::open(path.c_str(), O_RDWR);
  struct flock all{};
  all.l_type = F_WRLCK;
  all.l_whence = SEEK_SET;
  ASSERT_EQ(::fcntl(stranger, F_SETLK, &all), 0);
  const auto file = open_handle(path);
  EXPECT_OK(write_pieces(*file, With::alone));
  EXPECT_EQ(file->statistics().sieved, 0u);
  EXPECT_OK(file->close());
  ::close(stranger);
}

TEST(EngineHandles, AnOpeningHandleWaitsForReadModifyWrites) {
  const Directory directory;
  const std::string path = directory / "late";
  std::thread late;
  const auto open_and_write = [&] {
    late = std::thread([&] {
      const auto other = open_handle(path);
      EXPECT_OK(write_hole(*other));
      EXPECT_OK(other->close());
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // long enough for a wrong write
  };
  auto file = SharedFile::open(comm::make_self(), sieving(path), call_before_write(open_and_write));
  ASSERT_TRUE(file.ok());
  EXPECT_OK(write_pieces(**file, With::alone));
  late.join();
  EXPECT_OK((*file)->close());
  expect_pieces_and_hole(path);
}

TEST(EngineHandles, APlainWriteOfAnotherNodeIsNotUndone) {
  const Directory directory;
  const std::string path = directory / "nodes";
  std::atomic<bool> modifies = false, wrote = false;
  // Between the read and the write-back of rank 0, rank 1 has time to write into a hole.
  const Opener slow = call_before_write([&] {
    modifies = true;
    for (int i = 0; i < 200 && !wrote; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  comm::run_as_threads(std::vector{0, 1}, [&](const std::shared_ptr<comm::Comm>& ranks) {
    const bool first = ranks->rank() == 0;
    auto file = first ? SharedFile::open(ranks, sieving(path), slow)
                      : SharedFile::open(ranks, sieving(path));
    ASSERT_TRUE(file.ok());
    if (first) {
      EXPECT_OK(write_pieces(**file, With::alone));
      EXPECT_GT((*file)->statistics().transfer.read_modify_writes, 0u);
    } else {
      while (!modifies) std::this_thread::yield();
      EXPECT_OK(write_hole(**file));
      wrote = true;
    }
    EXPECT_OK((*file)->close());
  });
  expect_pieces_and_hole(path);
}

TEST(EngineHandles, CollectiveWindowsAreNotWrittenBackEither) {
  const Directory directory;
  const std::string path = directory / "together";
  const auto other = open_handle(path);
  EXPECT_OK(other->resize(1'000'000));
  const std::vector<int> nodes{0, 0, 1};
  const auto all_write = [&](const Opener& opener) {
    std::atomic<std::uint64_t> modified = 0;
    comm::run_as_threads(nodes, [&](const std::shared_ptr<comm::Comm>& ranks) {
      auto file = SharedFile::open(ranks, sieving(path), opener);
      ASSERT_TRUE(file.ok());
      EXPECT_OK(write_pieces(**file, With::together, ranks->rank(), ranks->size()));
      modified += (*file)->statistics().transfer.read_modify_writes;
      EXPECT_OK((*file)->close());
    });
    return modified.load();
  };
  const Opener opener = call_before_write([&] { EXPECT_OK(write_hole(*other)); });
  EXPECT_EQ(all_write(opener), 0u);
  EXPECT_OK(other->close());
  expect_pieces_and_hole(path);
  EXPECT_GT(all_write(opener), 0u) << "alone";
  expect_pieces_and_hole(path);
}

}  // namespace
}  // namespace pario::engine
