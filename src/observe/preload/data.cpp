// Wrappers of reads and writes.
#include <sys/uio.h>

#include "observe/preload/calls.hpp"

using namespace pario::preload;
namespace trace = pario::trace;

namespace {

std::uint64_t at(off_t offset) {
  return offset < 0 ? kAtOffset : static_cast<std::uint64_t>(offset);
}

/// Traces a transfer of a vector; its first piece represents the data.
template <class Real>
ssize_t trace_vector(Symbol symbol, int descriptor, const iovec* pieces, int count,
                     std::uint64_t where, Real real) {
  Transfer call{symbol, descriptor, 0, where};
  return trace_transfer(call, [&] {
    const ssize_t moved = real();
    for (int i = 0; moved >= 0 && i < count; ++i) call.asked += pieces[i].iov_len;
    if (moved > 0) call.data = pieces[0].iov_base;
    return moved;
  });
}

/// Counts a write whose flags ask for the storing of its bytes, as O_DSYNC does for all.
void count_synchronous_write(int descriptor) {
  Description* file = active() ? descriptors::find(descriptor) : nullptr;
  if (file == nullptr || (file->open_flags.load(std::memory_order_relaxed) & O_DSYNC) != 0) return;
  in_tracer([&] {
    if (trace::Record* record = record_of(*file, trace::Layer::posix))
      trace::add(record, &trace::Record::sync_writes, 1);
  });
}

/// False for splice, whose bytes are not in /proc/PID/io.
bool is_counted_by_kernel(Symbol source) { return source != Symbol::splice_source; }

/// Counts one half of a call that moves bytes between two files.
void count_half(const Transfer& transfer, Description& file, Span span, ssize_t moved) {
  count_transfer(transfer, file, span, moved);
  if (trace::Record* record = record_of(file, trace::Layer::posix))
    trace::add(record, &trace::Record::copies, 1);
}

/// Traces a call that moves bytes between two files; divides its time among the traced ones.
template <class Real>
ssize_t trace_between(const Transfer& source, const Transfer& target, Real real) {
  if (!active()) return real();
  Description* from = descriptors::find(source.descriptor);
  Description* to = descriptors::find(target.descriptor);
  const auto start = from != nullptr ? start_of(source, *from)
                     : to != nullptr ? start_of(target, *to)
                                     : start_alone(target.symbol);
  return count_call(start, real, [&](Span span, ssize_t moved) {
    const std::uint64_t half = span.start + (span.end - span.start) / 2;
    const std::uint64_t middle = from == nullptr ? span.start : to == nullptr ? span.end : half;
    if (from != nullptr)
      count_half(source, *from, {span.start, middle}, moved);
    else if (is_counted_by_kernel(source.symbol))
      trace::count_untraced(trace::Op::read, moved);
    if (to != nullptr)
      count_half(target, *to, {middle, span.end}, moved);
    else if (is_counted_by_kernel(source.symbol))
      trace::count_untraced(trace::Op::write, moved);
  });
}

/// Returns the offset at which a call began that has advanced `*offset`; null: at the descriptor's
/// offset.
std::uint64_t before(const off_t* offset, ssize_t moved) {
  return offset == nullptr || moved < 0 ? kAtOffset : static_cast<std::uint64_t>(*offset - moved);
}

}  // namespace

PARIO_WRAP(ssize_t, read, int fd, void* data, size_t size) {
  return trace_transfer({Symbol::read, fd, size, kAtOffset, data},
                        [&] { return PARIO_REAL(read)(fd, data, size); });
}
PARIO_WRAP(ssize_t, __read_chk, int fd, void* data, size_t size, size_t capacity) {
  return trace_transfer({Symbol::__read_chk, fd, size, kAtOffset, data},
                        [&] { return PARIO_REAL(__read_chk)(fd, data, size, capacity); });
}
PARIO_WRAP(ssize_t, write, int fd, const void* data, size_t size) {
  return trace_transfer({Symbol::write, fd, size, kAtOffset, data},
                        [&] { return PARIO_REAL(write)(fd, data, size); });
}

#define PREAD(name)                                                                  \
  PARIO_WRAP(ssize_t, name, int fd, void* data, size_t size, off_t offset) {         \
    return trace_transfer({Symbol::name, fd, size, at(offset), data},                \
                          [&] { return PARIO_REAL(name)(fd, data, size, offset); }); \
  }
#define PREAD_CHK(name)                                                                        \
  PARIO_WRAP(ssize_t, name, int fd, void* data, size_t size, off_t offset, size_t capacity) {  \
    return trace_transfer({Symbol::name, fd, size, at(offset)},                                \
                          [&] { return PARIO_REAL(name)(fd, data, size, offset, capacity); }); \
  }
#define PWRITE(name)                                                                 \
  PARIO_WRAP(ssize_t, name, int fd, const void* data, size_t size, off_t offset) {   \
    return trace_transfer({Symbol::name, fd, size, at(offset), data},                \
                          [&] { return PARIO_REAL(name)(fd, data, size, offset); }); \
  }

PREAD(pread)
PREAD(pread64)
PREAD_CHK(__pread_chk)
PREAD_CHK(__pread64_chk)
PWRITE(pwrite)
PWRITE(pwrite64)

#define VECTOR(name)                                                          \
  PARIO_WRAP(ssize_t, name, int fd, const iovec* pieces, int count) {         \
    return trace_vector(Symbol::name, fd, pieces, count, kAtOffset,           \
                        [&] { return PARIO_REAL(name)(fd, pieces, count); }); \
  }
#define VECTOR_AT(name)                                                               \
  PARIO_WRAP(ssize_t, name, int fd, const iovec* pieces, int count, off_t offset) {   \
    return trace_vector(Symbol::name, fd, pieces, count, at(offset),                  \
                        [&] { return PARIO_REAL(name)(fd, pieces, count, offset); }); \
  }
#define VECTOR_AT_2(name)                                                                      \
  PARIO_WRAP(ssize_t, name, int fd, const iovec* pieces, int count, off_t offset, int flags) { \
    return trace_vector(Symbol::name, fd, pieces, count, at(offset),                           \
                        [&] { return PARIO_REAL(name)(fd, pieces, count, offset, flags); });   \
  }

VECTOR(readv)
VECTOR(writev)
VECTOR_AT(preadv)
VECTOR_AT(preadv64)
VECTOR_AT(pwritev)
VECTOR_AT(pwritev64)
VECTOR_AT_2(preadv2)
VECTOR_AT_2(preadv64v2)

#define WRITE_VECTOR_AT_2(name)                                                                \
  PARIO_WRAP(ssize_t, name, int fd, const iovec* pieces, int count, off_t offset, int flags) { \
    const ssize_t moved = trace_vector(Symbol::name, fd, pieces, count, at(offset), [&] {      \
      return PARIO_REAL(name)(fd, pieces, count, offset, flags);                               \
    });                                                                                        \
    if (moved > 0 && (flags & (RWF_DSYNC | RWF_SYNC)) != 0) count_synchronous_write(fd);       \
    return moved;                                                                              \
  }
WRITE_VECTOR_AT_2(pwritev2)
WRITE_VECTOR_AT_2(pwritev64v2)

#define SENDFILE(name)                                                     \
  PARIO_WRAP(ssize_t, name, int out, int in, off_t* offset, size_t size) { \
    Transfer source{Symbol::sendfile_source, in, size};                    \
    return trace_between(source, {Symbol::name, out, size}, [&] {          \
      const ssize_t moved = PARIO_REAL(name)(out, in, offset, size);       \
      source.where = before(offset, moved);                                \
      return moved;                                                        \
    });                                                                    \
  }
#define BETWEEN(name)                                                                          \
  PARIO_WRAP(ssize_t, name, int in, off_t* in_offset, int out, off_t* out_offset, size_t size, \
             unsigned flags) {                                                                 \
    Transfer source{Symbol::name##_source, in, size};                                          \
    Transfer target{Symbol::name, out, size};                                                  \
    return trace_between(source, target, [&] {                                                 \
      const ssize_t moved = PARIO_REAL(name)(in, in_offset, out, out_offset, size, flags);     \
      source.where = before(in_offset, moved);                                                 \
      target.where = before(out_offset, moved);                                                \
      return moved;                                                                            \
    });                                                                                        \
  }

SENDFILE(sendfile)
SENDFILE(sendfile64)
BETWEEN(copy_file_range)
BETWEEN(splice)
