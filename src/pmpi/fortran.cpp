// MPI_File_create_errhandler of Fortran. Open MPI makes such handlers without calling the C function, and MPICH's C function does not learn
// that the handler is to be called as Fortran calls, so that pario's MPI-IO must see the Fortran symbols.
#include "mpi/mpi.hpp"
#include "mpiio/mpiio.hpp"
#include "pmpi/invocation.hpp"

namespace pario::pmpi {
namespace {

/// The error is absent where Fortran 2008 leaves it out. Handles are integers, alone or as the only member of a type.
using Create = void (*)(void* function, int* errhandler, int* error);

void create(const char* symbol, void* function, int* errhandler, int* error) {
  int unseen = 0;
  int& result = error ? *error : unseen;
  const auto behind = reinterpret_cast<Create>(mpi::find(symbol));
  if (!behind) {
    result = 16;  // MPI_ERR_OTHER, or any error: there is no MPI
    return;
  }
  behind(function, errhandler, &result);
  if (result == 0 && mpiio::enabled() && Library::get()) mpiio::made_in_fortran(*errhandler, function);
}

}  // namespace

#define PARIO_FORTRAN(symbol)                                                                                  \
  extern "C" __attribute__((visibility("default"))) void symbol(void* function, int* errhandler, int* error) { \
    create(#symbol, function, errhandler, error);                                                              \
  }

// Of mpif.h and the module mpi, as compilers write names.
PARIO_FORTRAN(mpi_file_create_errhandler)
PARIO_FORTRAN(mpi_file_create_errhandler_)
PARIO_FORTRAN(mpi_file_create_errhandler__)
PARIO_FORTRAN(MPI_FILE_CREATE_ERRHANDLER)
PARIO_FORTRAN(pmpi_file_create_errhandler)
PARIO_FORTRAN(pmpi_file_create_errhandler_)
PARIO_FORTRAN(pmpi_file_create_errhandler__)
PARIO_FORTRAN(PMPI_FILE_CREATE_ERRHANDLER)
// Of the module mpi_f08: MPICH's, and what Open MPI's calls.
PARIO_FORTRAN(mpi_file_create_errhandler_f08_)
PARIO_FORTRAN(pmpir_file_create_errhandler_f08_)
PARIO_FORTRAN(ompi_file_create_errhandler_f)

}  // namespace pario::pmpi
