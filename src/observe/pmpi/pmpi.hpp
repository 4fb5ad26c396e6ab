// Module pmpi: intercepts MPI calls of the process, for any MPI, without including mpi.h.
//
// The library defines MPI_X, PMPI_X and MPI_X_c for every function of functions.def; each
// definition records the call and forwards it. One binary serves MPICH, Open MPI and the standard
// ABI because of the calling conventions of x86-64 and aarch64 Linux: every argument of an MPI
// function is an integer, a pointer, an MPI_Aint/Count/Offset or a handle (int in MPICH, a pointer
// elsewhere), and each is passed as one machine word, in an integer register or in an 8-byte stack
// slot. A definition therefore declares its parameters as words, forwards them unchanged, and
// narrows only those that it reads (the upper half of an int's word is undefined). Functions with
// other parameters or results (MPI_Wtime, MPI_Wtick, the variadic MPI_Pcontrol) are not defined.
// Module mpi knows the handles and constants of the three interfaces. Calls of an MPI with another
// interface, or older than MPI 3, are forwarded unrecorded.
//
// MPI_X is forwarded to the next MPI_X, so that other profiling tools behind this one keep working,
// and PMPI_X to the next PMPI_X. An MPI that was loaded with RTLD_LOCAL is found among the loaded
// objects. Calls that arrive while the thread is inside another MPI call are forwarded unrecorded:
// Fortran wrappers that call PMPI_X (Open MPI) or MPI_X (MPICH) are counted once.
//
// A definition makes a name non-null for programs that test weak references. Two cases:
// - The MPI lacks the function (MPI_X_c in Open MPI 5). Weak references to it are set back to null
//   when MPI is initialised, so that the program behaves as without the tracer.
// - There is no MPI. A call returns MPI_ERR_OTHER, and a message reports the first one.
//   MPI_Initialized, MPI_Finalized and all functions that cannot wait, except those of files and of
//   error handlers, are not defined, so that tests of those names stay true.
//
// With pario's own MPI-IO (module mpiio), the functions of files are forwarded to it instead of the
// next MPI_X; everything else stays.
//
// Additional collective calls, all on PMPI level: three barriers over MPI_COMM_WORLD after MPI_Init
// and one before MPI_Finalize (clock notes), and on each other communicator one 8-byte broadcast
// inside its first blocking collective call (its common id).
#pragma once

#include <cstddef>
#include <span>

#include "core/trace/trace.hpp"

namespace pario::pmpi {

/// The first of the function ids of this module.
inline constexpr trace::FunctionId kFirstId = 512;

/// Fills in this module's rows of the table for trace::start().
void fill(std::span<trace::FunctionInfo, trace::kMaxFunctions> table);

/// Called in the child of a fork: its MPI calls (MPI allows none) are then forwarded unrecorded.
void after_fork();

}  // namespace pario::pmpi
