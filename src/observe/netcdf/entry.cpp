// The definitions of the functions of functions.def, which pass their words to dispatch().
#include "core/stack/stack.hpp"
#include "observe/netcdf/functions.hpp"

#define PARIO_NC_DEFINE(symbol, id, arguments)                                                  \
  extern "C" __attribute__((visibility("default"))) Word symbol(PARIO_PARAMETERS_##arguments) { \
    const Word words[symbols::word_capacity(arguments)] = {PARIO_WORDS_##arguments};            \
    const auto caller = reinterpret_cast<Word>(__builtin_return_address(0));                    \
    return dispatch(Id::id, SymbolId::symbol, words, stack::without_signature(caller));         \
  }
#define PARIO_NC(library, symbol, arguments, op, role) PARIO_NC_DEFINE(symbol, symbol, arguments)
#define PARIO_NC_TYPED_DEFINE(type, begin, end, arguments) \
  PARIO_NC_DEFINE(begin##type##end, begin##end, arguments)
#define PARIO_NC_TYPED(library, begin, end, arguments, op, role, how) \
  PARIO_NC_TYPES(PARIO_NC_TYPED_DEFINE, begin, end, arguments)

namespace pario::netcdf {
#include "observe/netcdf/functions.def"
}

#undef PARIO_NC
#undef PARIO_NC_DEFINE
#undef PARIO_NC_TYPED
#undef PARIO_NC_TYPED_DEFINE
