// Room mpiio: pario's own MPI-IO behind the MPI_File_* symbols, for every MPI (no mpi.h: see room mpi).
//
// Room pmpi defines the symbols. Where pario's MPI-IO is on (hint mpiio, PARIO_MPIIO=1) it asks replacement() for whom to call instead of
// the program's MPI; calls are recorded as before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mpi/mpi.hpp"

namespace pario::mpiio {

/// Whether this process's MPI_File_* functions are pario's own.
bool enabled();

/// The function that stands in for MPI_<name> (large: for MPI_<name>_c), taking the same words; null: not one of ours.
void* replacement(std::string_view name, bool large);

/// Called by pmpi before a call that completes requests (MPI_Wait, MPI_Test, ... all of them, `name` without MPI_): completes those of
/// pario's own that are among them, sleeping where the call may block. Words are the call's arguments.
void before_completion(std::string_view name, mpi::Word* arguments);
/// Called by pmpi after such a call, on the same thread: the result for the program, where requests of pario's have failed.
mpi::Word after_completion(std::string_view name, const mpi::Word* arguments, mpi::Word result);
/// Called by pmpi before a call by which other processes may learn something: what files keep back by hint is written, so that they find in
/// the files what they are told of.
void before_telling_others();
/// Whether MPI_Init should ask for MPI_THREAD_MULTIPLE: pario's own threads talk between nodes. Not so where the launcher says that there
/// is one node only, or says nothing at all.
bool wants_threads();

/// Called by pmpi when MPI_File_create_errhandler of Fortran has made a handler, with Fortran's integer of it.
void made_in_fortran(int errhandler, void* function);

/// The name of a file without a prefix of ROMIO's that names a driver ("ufs:", "lustre:").
const char* without_driver(const char* name);

/// How the bytes of a datatype lie (room pattern's notation); empty where they are in more than `pieces` pieces.
std::string layout_text(mpi::Word type, std::uint64_t pieces);

/// After a successful MPI_Init/MPI_Init_thread and before MPI_Finalize.
void after_init();
void before_finalize();

}  // namespace pario::mpiio
