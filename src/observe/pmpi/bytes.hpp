// The bytes that a communication call moves, as far as its arguments show them.
#pragma once

#include "observe/pmpi/communicators.hpp"
#include "observe/pmpi/invocation.hpp"

namespace pario::pmpi {

/// Returns count times size of a type; 0 for no data and if the type is null.
std::uint64_t bytes_of(const Library& mpi, std::int64_t count, Word type);

/// Returns the bytes that this rank sends, or receives if it sends none, in a call that has
/// succeeded. 0 if the arguments do not show them: for requests, neighbourhoods, and
/// intercommunicators, where some arguments are not significant.
std::uint64_t bytes_of(const Invocation& call, const Communicator* comm);

}  // namespace pario::pmpi
