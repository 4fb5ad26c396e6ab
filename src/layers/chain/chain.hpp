// Module chain: the layers between the wrappers of the tracer and the C library.
//
// A layer is a column of treatments.def: it gives each function a treatment, a class with call(),
// or None. A call of the program reaches the topmost active layer that has a treatment for its
// function. The treatment passes the call on with next(), to the next such layer below and finally
// to the real function. Layers that are inactive in this process are not in the chain and cost
// nothing.
//
// The chain of a function is built at its first call, which may precede all constructors. Building
// and calling use no heap, no stdio and no exceptions, except inside the dynamic linker.
#pragma once

// The types in the signatures of treatments.def.
#include <aio.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <concepts>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <type_traits>

#include "core/symbols/symbols.hpp"
#include "core/trace/trace.hpp"

/// Nonzero in the child of a vfork, which shares the memory of its parent, thread-local memory
/// included. Set by the wrapper of vfork; the parent clears it. Layers then pass calls on, because
/// their tables describe the parent.
extern "C" [[gnu::tls_model("initial-exec")]] constinit thread_local int pario_in_vfork_child;

namespace pario::chain {

using symbols::Symbol;

enum class LayerId : std::uint8_t {
#define PARIO_LAYER(module) module,
#include "layers/chain/layers.def"
#undef PARIO_LAYER
  count
};
inline constexpr std::size_t kLayers = static_cast<std::size_t>(LayerId::count);

/// The interface of a layer.
struct Layer {
  bool (*is_active)();            ///< reads the settings at its first call
  void* (*treatment_of)(Symbol);  ///< null: none
};

/// The layers from the top. Defined by the user of the chain (module preload; unit tests), because
/// calls may arrive before any constructor could register a layer.
extern const std::array<Layer, kLayers> layers;

/// Builds the chain of a function and returns its first element.
void* build(Symbol symbol);

namespace detail {
extern std::atomic<void*> entries[symbols::kSymbols];
extern std::atomic<void*> next_functions[kLayers][symbols::kSymbols];
}  // namespace detail

/// The first element of the chain of a function: the function that wrappers call. Never null.
template <class Function, Symbol symbol>
Function entry() {
  void* function = detail::entries[id_of(symbol)].load(std::memory_order_relaxed);
  if (function == nullptr) [[unlikely]]
    function = build(symbol);
  return reinterpret_cast<Function>(function);
}

/// Calls the element of the chain of a function that follows a layer.
template <LayerId layer, Symbol symbol, class Result, class... Args>
Result next(Args... args) {
  auto& place = detail::next_functions[static_cast<std::size_t>(layer)][id_of(symbol)];
  void* function = place.load(std::memory_order_relaxed);
  if (function == nullptr) [[unlikely]] {
    build(symbol);
    function = place.load(std::memory_order_relaxed);
  }
  return reinterpret_cast<Result (*)(Args...)>(function)(args...);
}

// ---- treatments: classes with `static auto call(auto next, ...)`, in which `next(...)` calls the
// element that follows the layer. The arguments of both are those of the function.

/// A treatment that passes the call on.
struct None {};

/// The base of treatments of functions that have a spelling with a directory before the path and
/// one without: all calls have the directory.
struct OnPath {};

namespace detail {

/// The argument `next` of treatments.
template <LayerId layer, Symbol symbol, class>
struct Next;
template <LayerId layer, Symbol symbol, class Result, class... Args>
struct Next<layer, symbol, Result(Args...)> {
  static constexpr Symbol kSymbol = symbol;
  Result operator()(Args... args) const { return next<layer, symbol, Result, Args...>(args...); }
};

/// `next` of a function without a directory.
template <class Next>
struct NextOnPath : Next {
  auto operator()(int, const char* path, auto... args) const {
    return Next::operator()(path, args...);
  }
};

/// `next` of a function whose first argument is a version.
template <class Next>
struct NextOfVersion : Next {
  auto operator()(auto... args) const { return Next::operator()(version, args...); }
  int version;
};

template <class Treatment, class Next, class>
struct Treated;
template <class Treatment, class Next, class Result, class... Args>
struct Treated<Treatment, Next, Result(Args...)> {
  static Result call(Args... args) { return Treatment::call(Next{}, args...); }
};
template <std::derived_from<OnPath> Treatment, class Next, class Result, class... Args>
struct Treated<Treatment, Next, Result(const char*, Args...)> {
  static Result call(const char* path, Args... args) {
    return Treatment::call(NextOnPath<Next>{}, AT_FDCWD, path, args...);
  }
};

}  // namespace detail

/// A treatment on paths for the stat functions of old binaries, whose first argument is a version.
template <class Treatment>
struct Versioned {
  template <class Next>
  static int call(Next next, int version, const char* path, void* status) {
    return Treatment::call(detail::NextOnPath<detail::NextOfVersion<Next>>{{next, version}},
                           AT_FDCWD, path, status);
  }
  template <class Next>
  static int call(Next next, int version, int directory, const char* path, void* status,
                  int flags) {
    return Treatment::call(detail::NextOfVersion<Next>{next, version}, directory, path, status,
                           flags);
  }
};

/// The function of a treatment, for Layer::treatment_of(); null for None.
template <LayerId layer, Symbol symbol, class Treatment, class Function>
void* function_of() {
  if constexpr (std::is_same_v<Treatment, None>)
    return nullptr;
  else
    return reinterpret_cast<void*>(
        &detail::Treated<Treatment, detail::Next<layer, symbol, Function>, Function>::call);
}

/// Finds the row of a file in the log; null: the file or the process is not traced. `path` ends
/// with a zero.
using RecordFinder = trace::Record* (*)(trace::Layer layer, std::string_view path, int descriptor);
/// Sets the function that finds rows for the layers, when the tracer has started.
void set_record_finder(RecordFinder finder);
/// The row of an open file, for notes of a layer in the log.
trace::Record* find_record(trace::Layer layer, std::string_view path, int descriptor);

}  // namespace pario::chain
