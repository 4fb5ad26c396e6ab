// The intercepted symbols: their ids, what the log says of them, and the functions they stand before.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "trace/trace.hpp"

namespace pario::preload {

enum class Symbol : trace::FunctionId {
#define PARIO_SYMBOL(name, category, op) name,
#define PARIO_FACET PARIO_SYMBOL
#include "preload/symbols.def"
#undef PARIO_FACET
#undef PARIO_SYMBOL
  count
};

inline constexpr std::size_t kSymbols = static_cast<std::size_t>(Symbol::count);

inline constexpr std::array<trace::FunctionInfo, kSymbols> kFunctions = {{
#define PARIO_SYMBOL(name, category, op) {#name, #category, trace::Op::op},
#define PARIO_FACET PARIO_SYMBOL
#include "preload/symbols.def"
#undef PARIO_FACET
#undef PARIO_SYMBOL
}};

constexpr trace::FunctionId id_of(Symbol symbol) { return static_cast<trace::FunctionId>(symbol); }
constexpr trace::Op op_of(Symbol symbol) { return kFunctions[id_of(symbol)].op; }

extern std::atomic<void*> real_functions[kSymbols];

/// Looks the next definition of `symbol` up (the C library's, or that of another preloaded library). Never null: where there is none, a
/// function that fails with ENOSYS.
void* resolve(Symbol symbol);

template <class Function, Symbol symbol>
Function real() {
  void* function = real_functions[id_of(symbol)].load(std::memory_order_relaxed);
  if (function == nullptr) [[unlikely]]
    function = resolve(symbol);
  return reinterpret_cast<Function>(function);
}

}  // namespace pario::preload

/// Defines the wrapper of a symbol. Its C++ name is another one, so that the C library's declaration (its attributes, its inline
/// definitions, its redirections) does not get in the way.
#define PARIO_WRAP(result, name, ...)                                                                \
  extern "C" __attribute__((visibility("default"))) result pario_##name(__VA_ARGS__) __asm__(#name); \
  extern "C" result pario_##name(__VA_ARGS__)

/// The real function behind a wrapper.
#define PARIO_REAL(name) ::pario::preload::real<decltype(&pario_##name), ::pario::preload::Symbol::name>()
