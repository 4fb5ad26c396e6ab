// The definitions of the functions of functions.def, which pass their words to dispatch().
#include <bit>

#include "core/stack/stack.hpp"
#include "observe/adios2/functions.hpp"

#define PARIO_ADIOS2_DEFINE(symbol, ...)                                   \
  const Word words[symbols::kRegisterWords] = {__VA_ARGS__};               \
  const auto caller = reinterpret_cast<Word>(__builtin_return_address(0)); \
  return dispatch(SymbolId::symbol, words, stack::without_signature(caller));
#define PARIO_ADIOS2_SYMBOL(symbol, arguments, ...)                                             \
  extern "C" __attribute__((visibility("default"))) Word symbol(PARIO_PARAMETERS_##arguments) { \
    PARIO_ADIOS2_DEFINE(symbol, PARIO_WORDS_##arguments)                                        \
  }
#define PARIO_ADIOS2_STEP(symbol, ...)                                                           \
  extern "C" __attribute__((visibility("default"))) Word symbol(Word a0, Word a1, float limit) { \
    PARIO_ADIOS2_DEFINE(symbol, a0, a1, std::bit_cast<std::uint32_t>(limit))                     \
  }
#define PARIO_ADIOS2_TYPED(type, begin, end, arguments, ...) \
  PARIO_ADIOS2_SYMBOL(begin##end, arguments)

namespace pario::adios2 {
#include "observe/adios2/functions.def"
}

#undef PARIO_ADIOS2_DEFINE
