// The definitions of the functions of functions.def, which pass their words to dispatch().
#include "core/stack/stack.hpp"
#include "observe/hdf5/functions.hpp"

#define PARIO_PARAMETERS_0 void
#define PARIO_PARAMETERS_1 Word a0
#define PARIO_PARAMETERS_2 PARIO_PARAMETERS_1, Word a1
#define PARIO_PARAMETERS_3 PARIO_PARAMETERS_2, Word a2
#define PARIO_PARAMETERS_4 PARIO_PARAMETERS_3, Word a3
#define PARIO_PARAMETERS_5 PARIO_PARAMETERS_4, Word a4
#define PARIO_PARAMETERS_6 PARIO_PARAMETERS_5, Word a5
#define PARIO_PARAMETERS_7 PARIO_PARAMETERS_6, Word a6

#define PARIO_WORDS_0
#define PARIO_WORDS_1 a0
#define PARIO_WORDS_2 PARIO_WORDS_1, a1
#define PARIO_WORDS_3 PARIO_WORDS_2, a2
#define PARIO_WORDS_4 PARIO_WORDS_3, a3
#define PARIO_WORDS_5 PARIO_WORDS_4, a4
#define PARIO_WORDS_6 PARIO_WORDS_5, a5
#define PARIO_WORDS_7 PARIO_WORDS_6, a6

#define PARIO_HDF5(name, arguments, op, role)                                                 \
  extern "C" __attribute__((visibility("default"))) Word name(PARIO_PARAMETERS_##arguments) { \
    const Word words[kMostArguments] = {PARIO_WORDS_##arguments};                             \
    const auto caller = reinterpret_cast<Word>(__builtin_return_address(0));                  \
    return dispatch(Id::name, words, stack::without_signature(caller));                       \
  }

namespace pario::hdf5 {
#include "observe/hdf5/functions.def"
}
