// Wrappers of libaio, which is a thin layer above system calls of the kernel (requests.hpp), and
// the same system calls made by syscall().
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>

#include "core/base/base.hpp"
#include "observe/preload/requests.hpp"
#include "observe/preload/system_calls.hpp"

using namespace pario::preload;
namespace base = pario::base;
namespace trace = pario::trace;

namespace {

/// A context of the kernel; its key is the io_context_t.
struct Context {
  std::uint64_t key, lock;
  RequestTable requests;
  trace::Record* last;  // the file of the last request; null: none
};
constexpr std::uint32_t kUnknownSize = 1024;  // of a context whose io_setup was not intercepted
constinit Pool<Context, 256> contexts{};

Context* begin_context(std::uint64_t key, std::uint32_t most) {
  Context* context = contexts.find(key);
  if (context == nullptr) context = contexts.claim(key);
  if (context == nullptr) return nullptr;
  const base::SpinLock lock(context->lock);
  context->requests.begin(most);
  context->last = nullptr;
  trace::add(&trace::Process::aio_contexts, 1);
  return context;
}

Context* context_of(std::uint64_t key) {
  if (key == 0) return nullptr;
  Context* context = contexts.find(key);
  return context != nullptr ? context : begin_context(key, kUnknownSize);
}

Symbol symbol_of(unsigned opcode) {
  switch (opcode) {
    case IOCB_CMD_PREAD:
    case IOCB_CMD_PREADV:
      return Symbol::libaio_read;
    case IOCB_CMD_PWRITE:
    case IOCB_CMD_PWRITEV:
      return Symbol::libaio_write;
    case IOCB_CMD_FSYNC:
    case IOCB_CMD_FDSYNC:
      return Symbol::libaio_sync;
    default:
      return Symbol::count;  // poll and similar: no file I/O
  }
}

std::uint64_t bytes_of(const iocb& block) {
  if (block.aio_lio_opcode != IOCB_CMD_PREADV && block.aio_lio_opcode != IOCB_CMD_PWRITEV)
    return block.aio_nbytes;
  const auto* pieces = reinterpret_cast<const iovec*>(block.aio_buf);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < block.aio_nbytes; ++i) bytes += pieces[i].iov_len;
  return bytes;
}

/// Returns the request of a control block that the kernel has accepted; without record: not traced.
Request request_of(const iocb* block, std::uint64_t now) {
  const Symbol symbol = symbol_of(block->aio_lio_opcode);
  const int descriptor = static_cast<int>(block->aio_fildes);
  Description* file = symbol == Symbol::count ? nullptr : descriptors::find_inside(descriptor);
  if (file == nullptr) return {};
  const bool is_write = block->aio_lio_opcode == IOCB_CMD_PWRITE;
  const bool is_sync = op_of(symbol) == trace::Op::sync;
  return {.data = reinterpret_cast<std::uint64_t>(block),
          .record = record_of(*file, trace::Layer::posix),
          .offset = is_sync ? trace::kUnknownOffset : static_cast<std::uint64_t>(block->aio_offset),
          .asked = is_sync ? 0 : bytes_of(*block),
          .start = now,
          .symbol = symbol,
          .open_flags = static_cast<std::uint32_t>(file->open_flags.load()),
          .data_written = is_write ? reinterpret_cast<const void*>(block->aio_buf) : nullptr};
}

/// Adds requests that are about to be submitted: another thread may find them complete before the
/// call returns.
void add_requests(Context& context, iocb* const* blocks, long count, std::uint64_t now) {
  const base::SpinLock lock(context.lock);
  for (long i = 0; i < count; ++i) {
    const Request request = request_of(blocks[i], now);
    if (request.record == nullptr) continue;
    begin_request(context.requests, request);
    context.last = request.record;
  }
}

/// Removes requests that the kernel has not accepted.
void remove_requests(Context& context, iocb* const* blocks, long first, long count) {
  const base::SpinLock lock(context.lock);
  Request request;
  for (long i = first; i < count; ++i)
    if (context.requests.take(reinterpret_cast<std::uint64_t>(blocks[i]), request))
      trace::withdraw_request(request.record);
}

void count_submission(Symbol symbol, Context& context, iocb* const* blocks, long count, long result,
                      Span span) {
  remove_requests(context, blocks, std::max(result, 0L), count);
  RequestFiles files;
  for (long i = 0; i < result; ++i) {
    const int descriptor = static_cast<int>(blocks[i]->aio_fildes);
    Description* file = descriptors::find_inside(descriptor);
    if (file != nullptr) files.add(record_of(*file, trace::Layer::posix));
  }
  files.count(symbol, span, result < 0);
}

/// Counts the requests that a call has found complete, and the call on their files; if none is, on
/// the file of the last request.
void count_wait(Symbol symbol, Context& context, const io_event* events, long count, Span span) {
  RequestFiles files;
  {
    const base::SpinLock lock(context.lock);
    Request request;
    for (long i = 0; i < count; ++i) {
      if (!context.requests.take(events[i].obj, request)) continue;
      count_completion(request, events[i].res, span.end);
      files.add(request.record);
    }
    if (files.is_empty() && !context.requests.is_empty()) files.add(context.last);
  }
  files.count(symbol, span, count < 0);
}

template <class Real>
auto trace_submission(Symbol symbol, std::uint64_t key, long count, iocb* const* blocks,
                      Real real) {
  if (!active() || count <= 0) return real();
  const NestedCalls nested;
  const std::uint64_t start = trace::ticks();
  Context* context = nullptr;
  if (nested.outermost())
    in_tracer([&] {
      context = context_of(key);
      if (context != nullptr) add_requests(*context, blocks, count, start);
    });
  const auto result = real();
  if (context != nullptr)
    in_tracer([&] {
      count_submission(symbol, *context, blocks, count, result, {start, trace::ticks()});
    });
  return result;
}

template <class Real>
auto trace_wait(Symbol symbol, std::uint64_t key, const io_event* events, Real real) {
  if (!active()) return real();
  const NestedCalls nested;
  const std::uint64_t start = trace::ticks();
  const auto result = real();
  const Span span{start, trace::ticks()};
  if (nested.outermost())
    in_tracer([&] {
      if (Context* context = context_of(key)) count_wait(symbol, *context, events, result, span);
    });
  return result;
}

template <class Real>
auto trace_setup(Symbol symbol, std::uint32_t most, const unsigned long* context, Real real) {
  if (!active()) return real();
  const NestedCalls nested;
  const auto result = trace_alone(symbol, real);
  if (nested.outermost() && result == 0) in_tracer([&] { begin_context(*context, most); });
  return result;
}

template <class Real>
auto trace_destroy(Symbol symbol, std::uint64_t key, Real real) {
  if (!active()) return real();
  if (Context* context = contexts.find(key)) contexts.release(*context);
  return trace_alone(symbol, real);
}

}  // namespace

namespace pario::preload {

void libaio::forget_all() { contexts.forget_all(); }

// The words of a system call are those of the function of libaio; the kernel's io_setup and others
// return -1 by way of syscall().
long system_calls::trace_libaio(long number, const Words& w) {
  const auto real = [&] { return make_system_call(number, w); };
  const auto* events = reinterpret_cast<const io_event*>(w[3]);
  const auto key = static_cast<std::uint64_t>(w[0]);
  switch (number) {
    case SYS_io_setup:
      return trace_setup(Symbol::io_setup, static_cast<std::uint32_t>(w[0]),
                         reinterpret_cast<const unsigned long*>(w[1]), real);
    case SYS_io_destroy:
      return trace_destroy(Symbol::io_destroy, key, real);
    case SYS_io_submit:
      return trace_submission(Symbol::io_submit, key, w[1], reinterpret_cast<iocb* const*>(w[2]),
                              real);
    case SYS_io_getevents:
      return trace_wait(Symbol::io_getevents, key, events, real);
    case SYS_io_pgetevents:
      return trace_wait(Symbol::io_pgetevents, key, events, real);
    default:
      return trace_alone(Symbol::io_cancel, real);
  }
}

}  // namespace pario::preload

PARIO_WRAP(int, io_setup, int most, unsigned long* context) {
  return trace_setup(Symbol::io_setup, static_cast<std::uint32_t>(most), context,
                     [&] { return PARIO_REAL(io_setup)(most, context); });
}
PARIO_WRAP(int, io_destroy, unsigned long context) {
  return trace_destroy(Symbol::io_destroy, context,
                       [&] { return PARIO_REAL(io_destroy)(context); });
}
PARIO_WRAP(int, io_submit, unsigned long context, long count, iocb** blocks) {
  return trace_submission(Symbol::io_submit, context, count, blocks,
                          [&] { return PARIO_REAL(io_submit)(context, count, blocks); });
}
PARIO_WRAP(int, io_cancel, unsigned long context, iocb* block, io_event* event) {
  return trace_alone(Symbol::io_cancel,
                     [&] { return PARIO_REAL(io_cancel)(context, block, event); });
}
PARIO_WRAP(int, io_getevents, unsigned long context, long least, long most, io_event* events,
           timespec* timeout) {
  return trace_wait(Symbol::io_getevents, context, events, [&] {
    return PARIO_REAL(io_getevents)(context, least, most, events, timeout);
  });
}
PARIO_WRAP(int, io_pgetevents, unsigned long context, long least, long most, io_event* events,
           timespec* timeout, sigset_t* mask) {
  return trace_wait(Symbol::io_pgetevents, context, events, [&] {
    return PARIO_REAL(io_pgetevents)(context, least, most, events, timeout, mask);
  });
}
