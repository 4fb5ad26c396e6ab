#include "layers/buffers/backing_file.hpp"

#include <cerrno>

#include "layers/buffers/handle.hpp"
#include "layers/buffers/statistics.hpp"

namespace pario::buffers {

void BackingFile::set(FileId id, std::string_view path, std::uint64_t writeback) {
  id_ = id;
  path_size_ = path.copy(path_, sizeof path_);
  writeback_ = writeback;
}

TransferResult BackingFile::write(const Buffer& buffer, bool appends) const {
  TransferResult result;
  // The program may have closed the descriptor by a system call, and opened another file there.
  if (!is_open_on(buffer.handle->descriptor, id_)) result.error = -EBADF;
  for (const ByteRanges::Range range : buffer.valid.ranges()) {
    if (result.error == 0) write_range(buffer, range, appends, result);
    if (result.error != 0)
      report_lost_bytes(result.error, {buffer.begin + range.begin, buffer.begin + range.end});
  }
  start_writeback(buffer);
  return result;
}

void BackingFile::write_range(const Buffer& buffer, ByteRanges::Range range, bool appends,
                              TransferResult& result) const {
  const int descriptor = buffer.handle->descriptor;
  while (range.begin < range.end) {
    const std::uint64_t start = trace::ticks();
    const iovec piece{buffer.memory + range.begin, range.end - range.begin};
    const long written =
        appends ? system_calls.write(descriptor, piece.iov_base, piece.iov_len)
                : system_calls.pwritev(descriptor, &piece, 1, buffer.begin + range.begin);
    if (written == -EINTR) continue;
    count_call(result.calls, written, start);
    if (written <= 0) {
      result.error = written == 0 ? -EIO : written;
      return;
    }
    range.begin += static_cast<std::uint32_t>(written);
  }
}

void BackingFile::start_writeback(const Buffer& buffer) const {
  const std::uint64_t begin = base::round_down(buffer.begin, writeback_);
  const std::uint64_t end = buffer.begin + buffer.valid.end();
  if (end - begin >= writeback_)
    system_calls.start_writeback(buffer.handle->descriptor, begin, end - begin);
}

void BackingFile::report_lost_bytes(long error, base::Extent range) const {
  base::Text<1024> text;
  text.add(path()).add(": bytes ").add(range.begin).add(" to ").add(range.end);
  text.add(", written by the program, did not reach the file: ");
  print_message(text.add(base::errno_name(static_cast<int>(-error))).view());
}

Statistics::Calls BackingFile::read(Buffer& buffer, std::uint64_t size) const {
  Statistics::Calls calls;
  const std::uint64_t start = trace::ticks();
  const iovec piece{buffer.memory, size};
  const long result = system_calls.preadv(buffer.handle->descriptor, &piece, 1, buffer.begin);
  count_call(calls, result, start);
  if (result > 0) buffer.valid.add(0, static_cast<std::uint32_t>(result));
  return calls;
}

}  // namespace pario::buffers
