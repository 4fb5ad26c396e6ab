// What the tracer does when MPI starts and ends.
#pragma once

#include "pmpi/invocation.hpp"

namespace pario::pmpi {

inline constexpr std::uint64_t kEndedByAbort = 5;  // process.end_kind

/// After a successful MPI_Init: rank and size, the notes `mpi` and `clock`, three barriers.
void after_init(const Invocation& call);
/// Before MPI_Finalize: one barrier, the second note `clock`.
void before_finalize(const Library& mpi, std::uint64_t now);

}  // namespace pario::pmpi
