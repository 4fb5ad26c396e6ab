// The functions of the fake MPI that exist only so that pario recognises an MPI.
#include <cstdint>

using Word = std::uintptr_t;

#define PARIO_PMPI(name, member, ...) \
  extern "C" __attribute__((weak)) int PMPI_##name(__VA_ARGS__) { return 1; }
#define PARIO_PMPI_OPTIONAL PARIO_PMPI
#include "core/mpi/library.def"
