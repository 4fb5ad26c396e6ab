// Module mpiio: pario's own MPI-IO behind the MPI_File_* symbols, for every MPI (without mpi.h: see
// module mpi).
//
// Module pmpi defines the symbols. If pario's MPI-IO is on (hint mpiio, PARIO_MPIIO=1), pmpi calls
// the function that replacement() returns instead of the program's MPI, and traces calls in the
// same way. It calls the functions below inside the program's MPI calls, on any of its threads,
// never in a signal handler.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/mpi/mpi.hpp"

namespace pario::mpiio {

/// True if the MPI_File_* functions of this process are pario's own.
bool is_enabled();

/// Returns the function that replaces MPI_<name> (large: MPI_<name>_c) and takes the same words;
/// null: pario does not replace it.
void* replacement(std::string_view name, bool large);

/// Called by pmpi before a call that completes requests (MPI_Wait, MPI_Test, ...; `name` without
/// MPI_): completes pario's own requests among the arguments; sleeps if the call may block.
void before_completion(std::string_view name, mpi::Word* arguments);
/// Called by pmpi after such a call, on the same thread. Returns the result for the program, an
/// error if requests of pario have failed.
mpi::Word after_completion(std::string_view name, const mpi::Word* arguments, mpi::Word result);
/// Called by pmpi before a call that communicates: writes the bytes that hints delay, so that other
/// ranks can read them. `ends`: the call ends the program.
void before_communication(bool ends);
/// Called by pmpi after a call that may have announced changes of files to this process.
void after_communication();
/// True if MPI_Init should ask for MPI_THREAD_MULTIPLE, because threads of pario communicate
/// between nodes. False if the launcher names one node, or no number of nodes.
bool wants_threads();

/// Called by pmpi when MPI_File_create_errhandler of Fortran has made a handler; `errhandler`: its
/// Fortran integer.
void note_fortran_handler(int errhandler, void* function);

/// Returns the name of a file without ROMIO's prefix of a driver ("ufs:", "lustre:").
const char* without_driver(const char* name);

/// Describes the layout of a datatype in the notation of module pattern; empty if it has more than
/// `limit` characters.
std::string layout_text(mpi::Word type, std::size_t limit);

/// Called after a successful MPI_Init or MPI_Init_thread, and after MPI_Finalize, in which
/// callbacks of attributes may close files.
void after_init();
void after_finalize();

}  // namespace pario::mpiio
