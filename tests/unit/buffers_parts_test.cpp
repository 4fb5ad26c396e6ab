// The parts of a buffered file, each alone.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "layers/buffers/file_lock.hpp"
#include "layers/buffers/forked_files.hpp"
#include "layers/buffers/handle.hpp"
#include "layers/buffers/signal_writes.hpp"
#include "layers/buffers/window_cache.hpp"

namespace {

using namespace pario;
using buffers::Buffer;
using buffers::FileLock;
using buffers::Handle;
using buffers::Monitor;
using buffers::SignalWrites;

hints::StreamHints windows_of(std::uint64_t size, std::uint64_t count) {
  hints::StreamHints hints = hints::default_stream_hints();
  hints.size = size;
  hints.count = count;
  return hints;
}

/// Makes an empty buffer dirty.
void fill(buffers::WindowCache& windows, std::uint64_t begin, std::uint32_t bytes,
          std::uint64_t since_ns) {
  Buffer* buffer = windows.find_empty();
  ASSERT_NE(buffer, nullptr);
  buffer->begin = begin;
  buffer->dirty_since_ns = since_ns;
  buffer->valid.clear();
  buffer->valid.add(0, bytes);
  buffer->state = Buffer::State::filling;
}

TEST(WindowCache, FindsBuffersByWindowAgeAndPosition) {
  static constinit buffers::WindowCache windows;
  hints::StreamHints hints = windows_of(100, 3);
  ASSERT_TRUE(windows.allocate(hints, -1));
  EXPECT_EQ(windows.dirty_end(), 0u);
  EXPECT_EQ(windows.find_first_dirty(), nullptr);
  fill(windows, 200, 40, 1);
  fill(windows, 100, 60, 2);
  EXPECT_EQ(windows.dirty_end(), 240u);
  EXPECT_EQ(windows.find_oldest_filling()->begin, 200u);
  EXPECT_EQ(windows.find_first_dirty()->begin, 100u);
  EXPECT_EQ(windows.find_dirty(200)->valid.end(), 40u);
  EXPECT_EQ(windows.find_dirty(0), nullptr);
  EXPECT_EQ(windows.find_read_ahead(200), nullptr) << "its bytes are dirty";
  EXPECT_EQ(windows.find_dirty_bytes(110, 50), windows.find_dirty(100)->memory + 10);
  EXPECT_EQ(windows.find_dirty_bytes(110, 51), nullptr) << "beyond the dirty bytes";
  fill(windows, 0, 100, 3);
  EXPECT_EQ(windows.find_empty(), nullptr);
  EXPECT_FALSE(windows.lacks_memory());
  for (Buffer& buffer : windows.all()) buffer.state = Buffer::State::empty;
  windows.release();
}

TEST(SignalWrites, KeepTheirOrderUntilTheyAreRemoved) {
  static SignalWrites writes;
  Handle handle, reader;
  handle.writes = true;
  char first[] = "first", second[] = "second";
  const iovec pieces[] = {{first, 5}, {second, 6}};
  EXPECT_EQ(writes.add(handle, pieces, {}), 11);
  EXPECT_EQ(writes.add(handle, {pieces, 1}, std::uint64_t{70}), 5);
  EXPECT_EQ(writes.add(reader, pieces, {}), -EBADF);
  SignalWrites::Batch batch;
  writes.remove_all(batch);
  EXPECT_TRUE(writes.is_empty());
  std::string seen;
  for (SignalWrites::Write write; batch.next(write);)
    seen += std::string(static_cast<char*>(write.bytes.iov_base), write.bytes.iov_len) + "@" +
            std::to_string(write.at.value_or(0)) + " ";
  EXPECT_EQ(seen, "firstsecond@0 first@70 ");
}

TEST(SignalWrites, RejectBytesWithoutRoom) {
  static SignalWrites writes;
  Handle handle;
  handle.writes = true;
  std::string data(SignalWrites::kCapacity / 2, 'x');
  const iovec piece{data.data(), data.size()};
  EXPECT_EQ(writes.add(handle, {&piece, 1}, {}), static_cast<long>(data.size()));
  EXPECT_EQ(writes.add(handle, {&piece, 1}, {}), -EAGAIN);
}

TEST(FileLock, IsNotHeldTwiceByOneThread) {
  Monitor monitor, other;
  const FileLock lock(monitor);
  EXPECT_TRUE(lock.is_held());
  EXPECT_FALSE(FileLock(monitor).is_held()) << "as in a signal handler of the holder";
  EXPECT_TRUE(FileLock(other).is_held());
  EXPECT_FALSE(FileLock(monitor).is_held()) << "after the lock of another file";
  std::thread([&] { EXPECT_FALSE(FileLock(monitor, std::try_to_lock).is_held()); }).join();
}

TEST(HandleList, StoresAndLoadsOffsets) {
  const int descriptor = ::open("/tmp", O_TMPFILE | O_RDWR, 0600);
  struct stat status;
  ASSERT_EQ(::fstat(descriptor, &status), 0);
  Handle handle, writer;
  handle.descriptor = writer.descriptor = descriptor;
  handle.offset = 77;
  buffers::HandleList handles;
  handles.add(handle);
  EXPECT_FALSE(handles.has_writer());
  handles.store_offsets();
  EXPECT_EQ(::lseek(descriptor, 0, SEEK_CUR), 77);
  ::lseek(descriptor, 5, SEEK_SET);
  EXPECT_TRUE(handles.load_offsets(buffers::file_id_of(status)));
  EXPECT_EQ(handle.offset, 5u);
  EXPECT_FALSE(handles.load_offsets({})) << "the descriptor is open on another file";
  writer.writes = true;
  handles.add(writer);
  EXPECT_TRUE(handles.has_writer());
  handles.remove(handle);
  handles.remove(writer);
  EXPECT_TRUE(handles.is_empty());
  ::close(descriptor);
}

TEST(ForkedFiles, AreForgottenWhenNoChildIsAlive) {
  buffers::ForkedFiles files;
  EXPECT_FALSE(files.contains({1, 1}));
  files.add({1, 2});
  EXPECT_FALSE(files.contains({1, 2}));
  EXPECT_FALSE(files.contains({1, 1}));
}

}  // namespace
