#include "observe/pmpi/library.hpp"

#include <atomic>

namespace pario::pmpi {
namespace {

constexpr std::size_t kFunctionCount = static_cast<std::size_t>(Id::count);

/// One row per function: the symbols of the four variants.
constexpr const char* kSymbols[kFunctionCount][4] = {
#define PARIO_MPI(name, ...) {"MPI_" #name, "PMPI_" #name, "MPI_" #name "_c", "PMPI_" #name "_c"},
#define PARIO_MPI_FILE(name, ...) PARIO_MPI(name)
#define PARIO_MPI_QUIET(name, ...) PARIO_MPI(name)
#include "observe/pmpi/functions.def"
#undef PARIO_MPI
#undef PARIO_MPI_FILE
#undef PARIO_MPI_QUIET
};

}  // namespace

void* real(Id id, Variant variant) {
  static std::atomic<void*> found[kFunctionCount][4];
  const auto row = static_cast<std::size_t>(id), column = static_cast<std::size_t>(variant);
  void* function = found[row][column].load(std::memory_order_relaxed);
  if (function) return function;
  function = mpi::find(kSymbols[row][column]);
  found[row][column].store(function, std::memory_order_relaxed);
  return function;
}

}  // namespace pario::pmpi
