// The kinds of wrapped calls. Each function makes the real call, a function object, exactly once
// and returns its result. The call is counted afterwards, out of line, and errno is preserved.
// While the real call runs, the thread is not inside the tracer: calls of a signal handler that
// interrupts it are counted like any others. A call that ends by cancellation or an exception is
// not counted.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <type_traits>

#include "core/trace/trace.hpp"
#include "observe/preload/descriptions.hpp"
#include "observe/preload/readable.hpp"
#include "observe/preload/tracer.hpp"
#include "observe/preload/wrap.hpp"

namespace pario::preload {

template <class Result>
bool is_failure(Result result) {
  if constexpr (std::is_pointer_v<Result>)
    return result == nullptr;
  else
    return result < 0;
}

/// Marks a read or write at the descriptor's own offset, which then moves.
inline constexpr std::uint64_t kAtOffset = trace::kUnknownOffset;

struct Transfer {
  Symbol symbol;
  int descriptor;
  std::uint64_t asked;
  std::uint64_t where = kAtOffset;  ///< offset, or kAtOffset
  const void* data = nullptr;       ///< the first byte moved, for samples; may be null
};

struct Span {
  std::uint64_t start, end;  ///< ticks
};

// The functions below count a call; they are called in_tracer().
void count_transfer(const Transfer& transfer, Description& file, Span span, std::int64_t moved);
/// `record` may be null: the file is not traced. Inlined, because each frame costs the search for
/// the call site.
inline void count_row(Symbol symbol, trace::Record* record, Span span, bool failed,
                      std::uint64_t offset = trace::kUnknownOffset, std::uint64_t asked = 0) {
  if (record == nullptr) return;
  trace::count(record, {.function = id_of(symbol),
                        .op = op_of(symbol),
                        .start = span.start,
                        .end = span.end,
                        .offset = offset,
                        .asked = asked,
                        .result = failed ? -1 : 0});
}
inline void count_on(Symbol symbol, Description& file, Span span, bool failed,
                     std::uint64_t offset = trace::kUnknownOffset, std::uint64_t asked = 0) {
  count_row(symbol, record_of(file, trace::Layer::posix), span, failed, offset, asked);
}
void count_path(Symbol symbol, int directory, const char* name, Span span, bool failed);
/// Enters an open descriptor, and returns the row of its file; null: it is not traced. `name` ends
/// with a zero.
trace::Record* enter_open(int directory, std::string_view name, int flags, int descriptor);
inline void count_open(Symbol symbol, int directory, std::string_view name, int flags, Span span,
                       int descriptor) {
  trace::Record* record = name.starts_with('/') ? descriptors::attach_again(
                                                      descriptor, trace::Layer::posix, name, flags)
                                                : nullptr;
  if (record == nullptr) record = enter_open(directory, name, flags, descriptor);
  if (record == nullptr) return;
  trace::count(record, {.function = id_of(symbol),
                        .op = op_of(symbol),
                        .start = span.start,
                        .end = span.end,
                        .result = descriptor,
                        .open_flags = static_cast<std::uint32_t>(flags)});
}
void count_alone(Symbol symbol, Span span, bool failed);
/// Counts a call that waits for another process, by its function alone.
inline void count_wait(Symbol symbol, Span span, std::int64_t moved) {
  trace::count_wait({.function = id_of(symbol),
                     .op = op_of(symbol),
                     .start = span.start,
                     .end = span.end,
                     .result = moved});
}

/// The facts of a call before it is made, for count_call().
inline trace::CallStart start_of(const Transfer& call, const Description& file) {
  std::uint64_t offset = call.where;
  if (offset == kAtOffset && !file.shared.load(std::memory_order_relaxed))
    offset = file.offset.load(std::memory_order_relaxed);
  return {id_of(call.symbol), row_of(file, trace::Layer::posix), offset, call.asked};
}
inline trace::CallStart start_on(Symbol symbol, const Description& file, trace::Layer layer,
                                 std::uint64_t offset = trace::kUnknownOffset,
                                 std::uint64_t asked = 0) {
  return {id_of(symbol), row_of(file, layer), offset, asked};
}
inline trace::CallStart start_on_path(Symbol symbol, const char* name) {
  return {.function = id_of(symbol), .path = readable_text(name)};
}
inline trace::CallStart start_alone(Symbol symbol) { return {.function = id_of(symbol)}; }

/// Makes the real call, which the log shows meanwhile with the facts of `call`, begun at `start`.
template <class Real>
auto make_shown_call(const trace::CallStart& call, std::uint64_t start, Real real) {
  const trace::ShownCall shown(call, start);
  const auto result = real();
  shown.end();
  // NOLINTNEXTLINE(clang-analyzer-core.StackAddressEscape): a number, which is only compared
  return result;
}

/// Makes the real call and shows it meanwhile. Then calls `count(span, result)` inside the tracer,
/// or `unseen(result)` if the thread is inside the tracer already.
template <class Real, class Count, class Unseen>
auto count_call(const trace::CallStart& call, Real real, Count count, Unseen unseen) {
  const std::uint64_t start = trace::ticks();
  const auto result = make_shown_call(call, start, real);
  const Span span{start, trace::ticks()};
  if (!in_tracer([&] { count(span, result); })) [[unlikely]]
    unseen(result);
  return result;
}
template <class Real, class Count>
auto count_call(const trace::CallStart& call, Real real, Count count) {
  return count_call(call, real, count, [](auto) {});
}

/// The fewest bytes of a read or write on a descriptor without a row that is asked whether it is a
/// socket.
constexpr std::int64_t kMessage = 4096;
bool is_socket(int descriptor);

/// Makes the real call, a read or write on a descriptor without a row.
template <class Real>
auto count_untraced(const Transfer& call, Real real) {
  if (!active()) return real();
  const std::uint64_t start = trace::ticks();
  const auto moved = make_shown_call(start_alone(call.symbol), start, real);
  if (!active()) return moved;
  const trace::Op op = op_of(call.symbol);
  const Symbol facet = op == trace::Op::read ? Symbol::untraced_read : Symbol::untraced_write;
  const Span span{start, trace::ticks()};
  trace::count_untraced(op, moved);
  if (moved >= kMessage && is_socket(call.descriptor)) trace::count_message(op, moved);
  in_tracer([&] { count_wait(facet, span, moved); });
  return moved;
}

/// Traces a read or write. `real` may complete `call`, with facts that are safe to read only after
/// the call has succeeded.
template <class Real>
auto trace_transfer(const Transfer& call, Real real) {
  Description* file = active() ? descriptors::find(call.descriptor) : nullptr;
  if (file == nullptr) return count_untraced(call, real);
  return count_call(
      start_of(call, *file), real,
      [&](Span span, auto moved) { count_transfer(call, *file, span, moved); },
      [&](auto) { file->shared.store(true, std::memory_order_relaxed); });  // the offset is unknown
}

/// Traces another call on a descriptor.
template <class Real>
auto trace_on_descriptor(Symbol symbol, int descriptor, Real real,
                         std::uint64_t offset = trace::kUnknownOffset, std::uint64_t asked = 0) {
  Description* file = active() ? descriptors::find(descriptor) : nullptr;
  if (file == nullptr) return real();
  return count_call(start_on(symbol, *file, trace::Layer::posix, offset, asked), real,
                    [&](Span span, auto result) {
                      count_on(symbol, *file, span, is_failure(result), offset, asked);
                    });
}

/// Traces a call on a path.
template <class Real>
auto trace_on_path(Symbol symbol, int directory, const char* name, Real real) {
  if (!active()) return real();
  return count_call(start_on_path(symbol, name), real, [&](Span span, auto result) {
    count_path(symbol, directory, name, span, is_failure(result));
  });
}

/// Traces a call that returns a new descriptor for `name`.
template <class Real>
int trace_open(Symbol symbol, int directory, const char* name, int flags, Real real) {
  if (!active()) return real();
  const trace::CallStart call = start_on_path(symbol, name);
  return count_call(
      call, real,
      [&](Span span, int descriptor) {
        count_open(symbol, directory, complete_text(call.path), flags, span, descriptor);
      },
      descriptors::forget);
}

/// Traces a call that concerns no file.
template <class Real>
auto trace_alone(Symbol symbol, Real real) {
  if (!active()) return real();
  return count_call(start_alone(symbol), real,
                    [&](Span span, auto result) { count_alone(symbol, span, is_failure(result)); });
}

/// True in the thread that runs main().
bool is_main_thread();

/// Traces a call that waits for another process, and moves no bytes. Two kinds say nothing about
/// the program and are passed on: those of an MPI library inside its own calls, whose time is in
/// these, and those of other threads, such as the progress threads of libraries.
template <class Real>
auto trace_peer_wait(Symbol symbol, Real real) {
  if (!active() || trace::inside_mpi() || !is_main_thread()) return real();
  return count_call(start_alone(symbol), real,
                    [&](Span span, auto result) { count_wait(symbol, span, result < 0 ? -1 : 0); });
}

}  // namespace pario::preload
