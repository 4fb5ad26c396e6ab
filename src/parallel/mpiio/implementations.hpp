// The functions of files.def. Each takes the words of a call and returns an MPI error code
// (File_f2c: a handle).
#pragma once

#include "parallel/mpiio/call.hpp"

namespace pario::mpiio {

#define PARIO_FILE(name, implementation) Word implementation(const Call& call);
#define PARIO_DATA(name, ...)
#define PARIO_END(name, ...)
#include "parallel/mpiio/files.def"
#undef PARIO_FILE
#undef PARIO_DATA
#undef PARIO_END

/// Implements all rows of PARIO_DATA and PARIO_END.
Word transfer(const Call& call);
Word end_transfer(const Call& call);

}  // namespace pario::mpiio
