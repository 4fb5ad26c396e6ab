// External32: values as every machine can read them (MPI 5.0, 14.5.2). By pario's own hand: the MPIs' own functions fail on types that
// have other sizes in the file than in memory (MPI_LONG).
#pragma once

#include "mpiio/call.hpp"

namespace pario::mpiio {

/// Bytes of an instance of a predefined type.
std::uint64_t external_size(Word basic);

/// `count` instances of a type from memory into a file's bytes; false: no memory for that, or a number is too large for the file.
bool to_external(const void* buffer, std::int64_t count, Word type, std::byte* file);

/// The other direction, as far as `bytes` go: the whole values among them. Returns how many bytes of memory were filled.
std::uint64_t from_external(void* buffer, std::int64_t count, Word type, const std::byte* file, std::uint64_t bytes);

}  // namespace pario::mpiio
