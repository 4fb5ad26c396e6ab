// The MPI_, PMPI_ and _c definitions of each function of functions.def, which pass their words to
// dispatch().
#include "core/symbols/words.hpp"
#include "observe/pmpi/invocation.hpp"

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
