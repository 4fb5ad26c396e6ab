// Non-blocking accesses: MPI requests that complete when pario's operation has, and the waiting for it.
#pragma once

#include "mpiio/file.hpp"

namespace pario::mpiio {

/// Waits for an operation without keeping the MPI from its own progress (a peer may be stuck in a message to this rank until then).
void wait_for(const File& file, engine::Operation& operation);

/// Makes the request that `place` points to. It keeps the file.
Outcome make_request(const Call& call, std::shared_ptr<File> file, Started started, Word place);

/// Fills a status (MPI_STATUS_IGNORE: not) with that many bytes.
void set_status(Word status, std::uint64_t bytes);

/// The outcome of a finished operation, and through `bytes` how many bytes of the program's memory were moved.
Outcome finish(Started& started, std::uint64_t& bytes);

/// Waits for the split collective of a file, when there is one.
void finish_split(File& file);

}  // namespace pario::mpiio
