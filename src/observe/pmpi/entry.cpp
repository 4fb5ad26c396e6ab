// The MPI_, PMPI_ and _c definitions of each function of functions.def, which pass their words to
// dispatch().
#include "observe/pmpi/invocation.hpp"

#define PARIO_PARAMETERS_0 void
#define PARIO_PARAMETERS_1 Word a0
#define PARIO_PARAMETERS_2 PARIO_PARAMETERS_1, Word a1
#define PARIO_PARAMETERS_3 PARIO_PARAMETERS_2, Word a2
#define PARIO_PARAMETERS_4 PARIO_PARAMETERS_3, Word a3
#define PARIO_PARAMETERS_5 PARIO_PARAMETERS_4, Word a4
#define PARIO_PARAMETERS_6 PARIO_PARAMETERS_5, Word a5
#define PARIO_PARAMETERS_7 PARIO_PARAMETERS_6, Word a6
#define PARIO_PARAMETERS_8 PARIO_PARAMETERS_7, Word a7
#define PARIO_PARAMETERS_9 PARIO_PARAMETERS_8, Word a8
#define PARIO_PARAMETERS_10 PARIO_PARAMETERS_9, Word a9
#define PARIO_PARAMETERS_11 PARIO_PARAMETERS_10, Word a10
#define PARIO_PARAMETERS_12 PARIO_PARAMETERS_11, Word a11
#define PARIO_PARAMETERS_13 PARIO_PARAMETERS_12, Word a12

#define PARIO_WORDS_0
#define PARIO_WORDS_1 a0
#define PARIO_WORDS_2 PARIO_WORDS_1, a1
#define PARIO_WORDS_3 PARIO_WORDS_2, a2
#define PARIO_WORDS_4 PARIO_WORDS_3, a3
#define PARIO_WORDS_5 PARIO_WORDS_4, a4
#define PARIO_WORDS_6 PARIO_WORDS_5, a5
#define PARIO_WORDS_7 PARIO_WORDS_6, a6
#define PARIO_WORDS_8 PARIO_WORDS_7, a7
#define PARIO_WORDS_9 PARIO_WORDS_8, a8
#define PARIO_WORDS_10 PARIO_WORDS_9, a9
#define PARIO_WORDS_11 PARIO_WORDS_10, a10
#define PARIO_WORDS_12 PARIO_WORDS_11, a11
#define PARIO_WORDS_13 PARIO_WORDS_12, a12

#define PARIO_SYMBOL(symbol, name, variant, args)                                          \
  extern "C" __attribute__((visibility("default"))) Word symbol(PARIO_PARAMETERS_##args) { \
    Word words[kMaxArguments] = {PARIO_WORDS_##args};                                      \
    return dispatch(Id::name, Variant::variant, words);                                    \
  }

#define PARIO_LARGE_0(name, args)
#define PARIO_LARGE_1(name, args)                 \
  PARIO_SYMBOL(MPI_##name##_c, name, large, args) \
  PARIO_SYMBOL(PMPI_##name##_c, name, profiling_large, args)

#define PARIO_MPI(name, args, large, ...)          \
  PARIO_SYMBOL(MPI_##name, name, plain, args)      \
  PARIO_SYMBOL(PMPI_##name, name, profiling, args) \
  PARIO_LARGE_##large(name, args)
#define PARIO_MPI_FILE PARIO_MPI
#define PARIO_MPI_QUIET PARIO_MPI

namespace pario::pmpi {
#include "observe/pmpi/functions.def"
}
