#include "observe/preload/ring_requests.hpp"

#include <fcntl.h>
#include <sys/uio.h>

namespace pario::preload::rings {
namespace {

using trace::Layer;
using trace::Op;

constexpr std::uint32_t kMostRegistered = 4096;

/// The symbol that counts an operation; Symbol::count: an operation on no file.
Symbol symbol_of(unsigned operation) {
  switch (operation) {
    case IORING_OP_READ:
    case IORING_OP_READV:
    case IORING_OP_READ_FIXED:
      return Symbol::io_uring_read;
    case IORING_OP_WRITE:
    case IORING_OP_WRITEV:
    case IORING_OP_WRITE_FIXED:
      return Symbol::io_uring_write;
    case IORING_OP_FSYNC:
    case IORING_OP_SYNC_FILE_RANGE:
      return Symbol::io_uring_sync;
    case IORING_OP_OPENAT:
    case IORING_OP_OPENAT2:
      return Symbol::io_uring_open;
    case IORING_OP_CLOSE:
      return Symbol::io_uring_close;
    case IORING_OP_FALLOCATE:
      return Symbol::io_uring_truncate;
    case IORING_OP_STATX:
      return Symbol::io_uring_stat;
    default:
      return Symbol::count;
  }
}

/// True for operations on files that are not attributed: splice, names, advice.
bool is_unknown(unsigned operation) {
  switch (operation) {
    case IORING_OP_FADVISE:
    case IORING_OP_SPLICE:
    case IORING_OP_TEE:
    case IORING_OP_RENAMEAT:
    case IORING_OP_UNLINKAT:
    case IORING_OP_MKDIRAT:
    case IORING_OP_SYMLINKAT:
    case IORING_OP_LINKAT:
    case IORING_OP_FSETXATTR:
    case IORING_OP_SETXATTR:
    case IORING_OP_FGETXATTR:
    case IORING_OP_GETXATTR:
    case IORING_OP_URING_CMD:
      return true;
    default:
      return operation > IORING_OP_SENDMSG_ZC;
  }
}

bool is_vector(unsigned operation) {
  return operation == IORING_OP_READV || operation == IORING_OP_WRITEV;
}

std::uint64_t bytes_of(const io_uring_sqe& entry, bool safe) {
  if (!is_vector(entry.opcode)) return entry.len;
  if (!safe) return 0;
  const auto* pieces = reinterpret_cast<const iovec*>(entry.addr);
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < entry.len; ++i) bytes += pieces[i].iov_len;
  return bytes;
}

/// Sets the file of a request on a descriptor or a registered file. False: it is not traced.
bool set_file(const Ring& ring, const io_uring_sqe& entry, Request& out) {
  if ((entry.flags & IOSQE_FIXED_FILE) != 0) {
    const auto place = static_cast<std::uint32_t>(entry.fd);
    if (ring.registered == nullptr || place >= kMostRegistered) return false;
    out.record = ring.registered[place].record;
    out.open_flags = static_cast<std::uint32_t>(ring.registered[place].open_flags);
    return out.record != nullptr;
  }
  Description* file = descriptors::find_inside(entry.fd);
  if (file == nullptr) return false;
  out.record = record_of(*file, Layer::posix);
  out.open_flags = static_cast<std::uint32_t>(file->open_flags.load(std::memory_order_relaxed));
  const bool moves = (op_of(out.symbol) == Op::read || op_of(out.symbol) == Op::write);
  if (moves && entry.off == trace::kUnknownOffset)  // at the descriptor's offset, which moves
    file->shared.store(true, std::memory_order_relaxed);
  return out.record != nullptr;
}

/// The flags of an open; those of openat2 stand in memory of the program.
std::uint32_t flags_of(const io_uring_sqe& entry) {
  if (entry.opcode == IORING_OP_OPENAT) return entry.open_flags;
  return static_cast<std::uint32_t>(*reinterpret_cast<const std::uint64_t*>(entry.off));
}

Meaning interpret_path(const io_uring_sqe& entry, bool safe, Request& out) {
  if (!safe || entry.addr == 0) return Meaning::unknown;
  const auto* name = reinterpret_cast<const char*>(entry.addr);
  if (*name == '\0') {  // AT_EMPTY_PATH
    Description* file = descriptors::find_inside(entry.fd);
    out.record = file == nullptr ? nullptr : record_of(*file, Layer::posix);
  } else {
    out.record = record_of(Layer::posix, entry.fd, name, -1);
  }
  if (op_of(out.symbol) == Op::open) {
    out.open_flags = flags_of(entry);
    out.place = entry.file_index;
  }
  return out.record == nullptr ? Meaning::no_file : Meaning::request;
}

/// The closing of a descriptor: it is forgotten now, because another thread may get its number.
Meaning interpret_close(const Ring& ring, const io_uring_sqe& entry, Request& out) {
  if (entry.file_index != 0) {
    const std::uint32_t place = entry.file_index - 1;
    if (ring.registered == nullptr || place >= kMostRegistered) return Meaning::no_file;
    out.record = ring.registered[place].record;
    ring.registered[place] = {};
    return out.record == nullptr ? Meaning::no_file : Meaning::request;
  }
  const bool known = set_file(ring, entry, out);
  descriptors::forget(entry.fd);
  return known ? Meaning::request : Meaning::no_file;
}

void set_range(const io_uring_sqe& entry, bool safe, Request& out) {
  switch (op_of(out.symbol)) {
    case Op::read:
    case Op::write:
      out.offset = entry.off;
      out.asked = bytes_of(entry, safe);
      break;
    case Op::truncate:
      out.offset = entry.off;
      out.asked = entry.addr;  // fallocate keeps the length there
      break;
    default:
      break;
  }
}

/// Counts an open, and enters its descriptor or its place among the registered files.
void complete_open(Ring& ring, const Request& request, std::int32_t result, std::uint64_t now) {
  count_completion(request, result, now);
  if (result < 0) return;
  if (request.place != 0) {
    const auto place = request.place == IORING_FILE_INDEX_ALLOC ? static_cast<std::uint32_t>(result)
                                                                : request.place - 1;
    if (ring.registered != nullptr && place < kMostRegistered)
      ring.registered[place] = {request.record, request.open_flags};
    return;
  }
  if (trace::is_bare(*request.record))
    trace::complete(*request.record, trace::facts_of(static_cast<int>(result)));
  if (descriptors::find_known(result) == nullptr)
    descriptors::attach(result, Layer::posix, request.record, static_cast<int>(request.open_flags));
}

}  // namespace

Meaning interpret(const Ring& ring, const io_uring_sqe& entry, bool safe, std::uint64_t now,
                  Request& out) {
  out = {.data = entry.user_data, .start = now, .symbol = symbol_of(entry.opcode)};
  if (out.symbol == Symbol::count)
    return is_unknown(entry.opcode) ? Meaning::unknown : Meaning::no_file;
  const Op operation = op_of(out.symbol);
  if (operation == Op::open || operation == Op::stat) return interpret_path(entry, safe, out);
  if (operation == Op::close) return interpret_close(ring, entry, out);
  if (!set_file(ring, entry, out)) {
    const bool is_registered = (entry.flags & IOSQE_FIXED_FILE) != 0;
    return is_registered && ring.registered == nullptr ? Meaning::unknown : Meaning::no_file;
  }
  set_range(entry, safe, out);
  return Meaning::request;
}

void complete(Ring& ring, const Request& request, std::int32_t result, std::uint64_t now) {
  if (op_of(request.symbol) == Op::open) return complete_open(ring, request, result, now);
  count_completion(request, result, now);
}

void register_files(Ring& ring, std::uint32_t first, const int* descriptors, std::uint32_t count) {
  const base::SpinLock lock(ring.lock);
  if (ring.registered == nullptr)
    ring.registered = reinterpret_cast<RegisteredFile*>(
        base::map_memory(kMostRegistered * sizeof(RegisteredFile)));
  if (ring.registered == nullptr || descriptors == nullptr) return;
  for (std::uint32_t i = 0; i < count && first + i < kMostRegistered; ++i) {
    if (descriptors[i] == -2) continue;  // IORING_REGISTER_FILES_SKIP
    Description* file = preload::descriptors::find_inside(descriptors[i]);
    ring.registered[first + i] =
        file == nullptr ? RegisteredFile{}
                        : RegisteredFile{record_of(*file, Layer::posix),
                                         static_cast<std::uint64_t>(file->open_flags.load())};
  }
}

void unregister_files(Ring& ring) {
  const base::SpinLock lock(ring.lock);
  for (std::uint32_t i = 0; ring.registered != nullptr && i < kMostRegistered; ++i)
    ring.registered[i] = {};
}

}  // namespace pario::preload::rings
