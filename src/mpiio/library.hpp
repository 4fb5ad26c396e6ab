// Room mpi, in short: this room names its functions, constants and handles in every other line.
#pragma once

#include "mpi/mpi.hpp"

namespace pario::mpiio {

#define PARIO_CONSTANT(name, ...) inline constexpr auto MPI_##name = mpi::Constant::MPI_##name;
#include "mpi/constants.def"
#undef PARIO_CONSTANT
#define PARIO_HANDLE(name, ...) inline constexpr auto MPI_##name = mpi::Handle::MPI_##name;
#include "mpi/handles.def"
#undef PARIO_HANDLE

/// The MPI at hand. Only called by a program that has called it, so it is there.
inline const mpi::Library& lib() { return *mpi::Library::get(); }
inline int k(mpi::Constant name) { return lib().value(name); }
inline mpi::Word h(mpi::Handle name) { return lib().predefined(name); }
/// Whether there are MPI_COMM_WORLD and MPI_COMM_SELF: not so in a program that has called MPI_Session_init only.
inline bool has_world() {
  int initialized = 0;
  return lib().initialized(&initialized) == 0 && initialized != 0;
}

}  // namespace pario::mpiio
