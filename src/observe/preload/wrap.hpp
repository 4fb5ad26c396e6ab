// The macros that define wrappers.
#pragma once

#include "core/symbols/symbols.hpp"
#include "layers/chain/chain.hpp"

namespace pario::preload {

using symbols::id_of;
using symbols::op_of;
using symbols::Symbol;

}  // namespace pario::preload

/// Defines the wrapper of a symbol. Its C++ name differs from the symbol, so that the C library's
/// declaration (its attributes, inline definitions and redirections) does not conflict.
#define PARIO_WRAP(result, name, ...)                                                         \
  extern "C"                                                                                  \
      __attribute__((visibility("default"))) result pario_##name(__VA_ARGS__) __asm__(#name); \
  extern "C" result pario_##name(__VA_ARGS__)

/// The function that a wrapper calls: the topmost layer that treats it, or the real function.
#define PARIO_REAL(name) \
  ::pario::chain::entry<decltype(&pario_##name), ::pario::symbols::Symbol::name>()
