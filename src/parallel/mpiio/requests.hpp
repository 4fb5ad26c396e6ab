// Non-blocking accesses: MPI requests that complete with an operation of pario, and waits for
// operations.
#pragma once

#include "parallel/mpiio/file.hpp"

namespace pario::mpiio {

/// Waits for an operation and lets the MPI make progress: another rank may wait for a message to
/// this rank.
void wait_for(const OpenFile& file, engine::Operation& operation);

/// Makes a request at address `place`. The request keeps the file open.
Outcome make_request(const Call& call, std::shared_ptr<OpenFile> file, Started started, Word place);

/// Sets the number of bytes in a status, unless it is MPI_STATUS_IGNORE.
void set_status(Word status, std::uint64_t bytes);

/// Returns the outcome of a finished operation; `bytes`: bytes of the program's memory moved.
Outcome finish(Started& started, std::uint64_t& bytes);

/// Waits for the split collective of a file, if there is one.
void finish_split(OpenFile& file);

}  // namespace pario::mpiio
