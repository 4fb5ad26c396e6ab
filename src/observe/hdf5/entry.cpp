// The definitions of the functions of functions.def, which pass their words to dispatch().
#include "core/stack/stack.hpp"
#include "observe/hdf5/functions.hpp"

#define PARIO_HDF5(name, arguments, op, role)                                                 \
  extern "C" __attribute__((visibility("default"))) Word name(PARIO_PARAMETERS_##arguments) { \
    const Word words[symbols::word_capacity(arguments)] = {PARIO_WORDS_##arguments};          \
    const auto caller = reinterpret_cast<Word>(__builtin_return_address(0));                  \
    return dispatch(Id::name, words, stack::without_signature(caller));                       \
  }

namespace pario::hdf5 {
#include "observe/hdf5/functions.def"
}
