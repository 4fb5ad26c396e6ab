// How many bytes a communication call moves, as far as its arguments say.
#pragma once

#include "pmpi/communicators.hpp"
#include "pmpi/invocation.hpp"

namespace pario::pmpi {

/// Count times size of a type; 0 for no data and where the type is null.
std::uint64_t bytes_of(const Library& mpi, std::int64_t count, Word type);

/// The bytes this rank gives, or where it gives none takes, in a call that has succeeded. 0 where the arguments do not tell (requests,
/// neighbourhoods, intercommunicators: there some are not significant).
std::uint64_t bytes_of(const Invocation& call, const Communicator* comm);

}  // namespace pario::pmpi
