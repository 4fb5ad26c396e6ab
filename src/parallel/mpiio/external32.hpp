// External32: values in a form that all machines can read (MPI 5.0, 14.5.2). The functions of the
// MPIs are not used: they fail on types whose size differs between file and memory (MPI_LONG).
#pragma once

#include "parallel/mpiio/call.hpp"

namespace pario::mpiio {

/// Returns the bytes of an instance of a type in the file.
std::uint64_t external_size(Word type);

/// Converts `count` instances of a type from memory to the form of the file. False: out of memory,
/// or a number is too large for the file.
bool to_external(const void* buffer, std::int64_t count, Word type, std::byte* file);

/// Converts the whole values among `bytes` of the file to memory. Returns the bytes of memory
/// filled.
std::uint64_t from_external(void* buffer, std::int64_t count, Word type, const std::byte* file,
                            std::uint64_t bytes);

}  // namespace pario::mpiio
