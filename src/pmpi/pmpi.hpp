// Room pmpi: sees every MPI call of the process, whichever MPI it is, without including any mpi.h.
//
// The library defines MPI_X, PMPI_X and MPI_X_c for every function of functions.def; each definition records the call and forwards
// it. One binary serves MPICH, Open MPI and the standard ABI because of the calling conventions of x86-64 and aarch64 Linux: every
// argument of an MPI function is an integer, a pointer, an MPI_Aint/Count/Offset or a handle (int in MPICH, a pointer elsewhere), and
// each of them travels as one machine word, in an integer register or in an 8-byte stack slot. A definition therefore declares its
// parameters as words, forwards them unchanged, and narrows only what it reads (the upper half of an int's word is undefined).
// Functions with other parameters or results (MPI_Wtime, MPI_Wtick, the variadic MPI_Pcontrol) are not defined. Handles and constants of
// the three interfaces are known to room mpi; calls of an MPI with another one, or older than MPI 3, are forwarded unrecorded.
//
// MPI_X is forwarded to the next MPI_X (so other profiling tools behind this one keep working), PMPI_X to the next PMPI_X; an MPI
// that was loaded with RTLD_LOCAL is found among the loaded objects. Calls that arrive while the thread is inside another MPI call
// are forwarded unrecorded: Fortran wrappers that call PMPI_X (Open MPI) or MPI_X (MPICH) are counted once.
//
// A definition makes a name non-null for programs that test weak references. Two cases:
// - an MPI is there but has not this function (MPI_X_c in Open MPI 5): weak references to it are set back to null when MPI is
//   initialised, so that the program takes the road it would take without the tracer;
// - no MPI is there at all: a call is answered with MPI_ERR_OTHER and said once. MPI_Initialized, MPI_Finalized and, but
//   for those of files and of error handlers, all functions that cannot wait are not defined, so tests of those names stay true.
//
// With pario's own MPI-IO (room mpiio) the functions of files are forwarded to it instead of the next MPI_X; everything else stays.
//
// Collective additions, all on PMPI level: three barriers over MPI_COMM_WORLD after MPI_Init and one before MPI_Finalize (clock
// notes), and on each other communicator one 8-byte broadcast inside its first blocking collective call (its common id).
#pragma once

#include <cstddef>
#include <span>

#include "trace/trace.hpp"

namespace pario::pmpi {

/// Function ids of this room are kFirstId ... kFirstId + function_count() - 1.
inline constexpr trace::FunctionId kFirstId = 512;
std::size_t function_count();

/// Writes this room's rows of the table that trace::start() gets.
void fill(std::span<trace::FunctionInfo, trace::kMaxFunctions> table);

/// In the child of a fork: its MPI calls (MPI allows none) are forwarded unrecorded from now on.
void after_fork();

}  // namespace pario::pmpi
