// The shapes of a wrapped call. Each takes the real call as a function object, makes it exactly once, and hands back its result; the
// counting afterwards is out of line and leaves errno alone. While the real call runs the thread is not inside the tracer: a signal
// handler that interrupts it makes calls like any other. A call that ends by cancellation or an exception is not counted.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <type_traits>

#include "preload/descriptions.hpp"
#include "preload/symbols.hpp"
#include "preload/tracer.hpp"
#include "trace/trace.hpp"

namespace pario::preload {

template <class Result>
bool failed(Result result) {
  if constexpr (std::is_pointer_v<Result>)
    return result == nullptr;
  else
    return result < 0;
}

/// Where a read or write begins.
inline constexpr std::uint64_t kAtOffset = trace::kUnknownOffset;

struct Transfer {
  Symbol symbol;
  int descriptor;
  std::uint64_t asked;
  std::uint64_t where = kAtOffset;  ///< kAtOffset: at the descriptor's offset, which moves
  const void* data = nullptr;       ///< of writes
};

struct Span {
  std::uint64_t start, end;  ///< ticks
};

// The counting halves, to be called in_tracer().
void count_transfer(const Transfer& transfer, Description& file, Span span, std::int64_t moved);
/// `record` may be null: then it was not traced.
void count_row(Symbol symbol, trace::Record* record, Span span, bool failed, std::uint64_t offset = trace::kUnknownOffset,
               std::uint64_t asked = 0);
void count_on(Symbol symbol, Description& file, Span span, bool failed, std::uint64_t offset = trace::kUnknownOffset,
              std::uint64_t asked = 0);
void count_path(Symbol symbol, int directory, const char* name, Span span, bool failed);
void count_open(Symbol symbol, int directory, const char* name, int flags, Span span, int descriptor);
void count_alone(Symbol symbol, Span span, bool failed);

/// Makes the real call, and calls `count(span, result)` inside the tracer. `unseen` is called instead when that is not possible.
template <class Real, class Count, class Unseen>
auto counted(Real real, Count count, Unseen unseen) {
  const std::uint64_t start = trace::ticks();
  const auto result = real();
  const Span span{start, trace::ticks()};
  if (!in_tracer([&] { count(span, result); })) [[unlikely]]
    unseen(result);
  return result;
}
template <class Real, class Count>
auto counted(Real real, Count count) {
  return counted(real, count, [](auto) {});
}

/// A read or write. `what` may be completed by `real`: what is only safe to look at once the call has succeeded.
template <class Real>
auto transfer(const Transfer& what, Real real) {
  Description* file = active() ? descriptors::find(what.descriptor) : nullptr;
  if (file == nullptr) return real();
  return counted(
      real, [&](Span span, auto moved) { count_transfer(what, *file, span, moved); },
      [&](auto) { file->shared.store(true, std::memory_order_relaxed); });  // the offset has moved unseen
}

/// Another call on a descriptor.
template <class Real>
auto on_descriptor(Symbol symbol, int descriptor, Real real, std::uint64_t offset = trace::kUnknownOffset, std::uint64_t asked = 0) {
  Description* file = active() ? descriptors::find(descriptor) : nullptr;
  if (file == nullptr) return real();
  return counted(real, [&](Span span, auto result) { count_on(symbol, *file, span, failed(result), offset, asked); });
}

/// A call on a path.
template <class Real>
auto on_path(Symbol symbol, int directory, const char* name, Real real) {
  if (!active()) return real();
  return counted(real, [&](Span span, auto result) { count_path(symbol, directory, name, span, failed(result)); });
}

/// A call that returns a new descriptor for `name`.
template <class Real>
int opening(Symbol symbol, int directory, const char* name, int flags, Real real) {
  if (!active()) return real();
  return counted(
      real, [&](Span span, int descriptor) { count_open(symbol, directory, name, flags, span, descriptor); }, descriptors::forget);
}

/// A call that concerns no file.
template <class Real>
auto alone(Symbol symbol, Real real) {
  if (!active()) return real();
  return counted(real, [&](Span span, auto result) { count_alone(symbol, span, failed(result)); });
}

}  // namespace pario::preload
