// The actions of the tracer when MPI starts and ends.
#pragma once

#include "observe/pmpi/invocation.hpp"

namespace pario::pmpi {

inline constexpr std::uint64_t kEndedByAbort = 5;  // process.end_kind

/// After a successful MPI_Init: records rank and size, and writes the notes `mpi` and `clock`.
/// Three barriers.
void after_init(const Invocation& call);
/// Before MPI_Finalize: writes the second note `clock`. One barrier.
void before_finalize(const Library& mpi, std::uint64_t now);

}  // namespace pario::pmpi
