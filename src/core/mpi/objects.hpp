// The loaded object that is the MPI.
#pragma once

#include "core/mpi/mpi.hpp"

namespace pario::mpi {

struct Object {
  void* handle = nullptr;  ///< of dlopen; null: no MPI is loaded
  bool standard = false;   ///< its interface is the standard ABI
};
const Object& mpi_object();

/// Open MPI's predefined handles are addresses of variables, which may be copies in the program
/// itself (copy relocations). 0: not there.
Word address(const char* variable);

}  // namespace pario::mpi
