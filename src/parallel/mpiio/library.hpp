// Short names for module mpi: its functions, constants and handles appear in every other line.
#pragma once

#include "core/mpi/mpi.hpp"

namespace pario::mpiio {

#define PARIO_CONSTANT(name, ...) inline constexpr auto MPI_##name = mpi::Constant::MPI_##name;
#include "core/mpi/constants.def"
#undef PARIO_CONSTANT
#define PARIO_HANDLE(name, ...) inline constexpr auto MPI_##name = mpi::Handle::MPI_##name;
#include "core/mpi/handles.def"
#undef PARIO_HANDLE

/// Returns the MPI of the process. Only for functions that the program calls after MPI_Init.
inline const mpi::Library& lib() { return *mpi::Library::get(); }
inline int k(mpi::Constant name) { return lib().value(name); }
inline mpi::Word h(mpi::Handle name) { return lib().get_predefined(name); }
/// True if MPI_COMM_WORLD and MPI_COMM_SELF exist; they do not in a program that has called only
/// MPI_Session_init.
inline bool has_world() {
  int initialized = 0;
  return lib().initialized(&initialized) == 0 && initialized != 0;
}

}  // namespace pario::mpiio
