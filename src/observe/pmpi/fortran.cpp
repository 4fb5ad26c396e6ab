// MPI_File_create_errhandler of Fortran. Open MPI creates such handlers without the C function, and
// MPICH's C function cannot detect that the handler has Fortran's calling convention: pario's
// MPI-IO therefore needs the Fortran symbols.
#include "core/mpi/mpi.hpp"
#include "observe/pmpi/invocation.hpp"
#include "parallel/mpiio/mpiio.hpp"

namespace pario::pmpi {
namespace {

/// `error` may be null in Fortran 2008. Handles are integers, alone or as the only member of a
/// type.
using Create = void (*)(void* function, int* errhandler, int* error);

void create(const char* symbol, void* function, int* errhandler, int* error) {
  int ignored = 0;
  int& result = error ? *error : ignored;
  const auto behind = reinterpret_cast<Create>(mpi::find(symbol));
  if (!behind) {
    result = 16;  // MPI_ERR_OTHER, or any error: there is no MPI
    return;
  }
  behind(function, errhandler, &result);
  if (result == 0 && mpiio::is_enabled() && Library::get())
    mpiio::note_fortran_handler(*errhandler, function);
}

}  // namespace

#define PARIO_FORTRAN(symbol)                                                                    \
  extern "C" __attribute__((visibility("default"))) void symbol(void* function, int* errhandler, \
                                                                int* error) {                    \
    create(#symbol, function, errhandler, error);                                                \
  }

// Symbols of mpif.h and the module mpi, in the spellings of compilers.
PARIO_FORTRAN(mpi_file_create_errhandler)
PARIO_FORTRAN(mpi_file_create_errhandler_)
PARIO_FORTRAN(mpi_file_create_errhandler__)
PARIO_FORTRAN(MPI_FILE_CREATE_ERRHANDLER)
PARIO_FORTRAN(pmpi_file_create_errhandler)
PARIO_FORTRAN(pmpi_file_create_errhandler_)
PARIO_FORTRAN(pmpi_file_create_errhandler__)
PARIO_FORTRAN(PMPI_FILE_CREATE_ERRHANDLER)
// Symbols of the module mpi_f08: of MPICH, and of the function that Open MPI's module calls.
PARIO_FORTRAN(mpi_file_create_errhandler_f08_)
PARIO_FORTRAN(pmpir_file_create_errhandler_f08_)
PARIO_FORTRAN(ompi_file_create_errhandler_f)

}  // namespace pario::pmpi
