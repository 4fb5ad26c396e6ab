// The functions behind the ones that this room defines; what they are called with is known to room mpi.
#pragma once

#include <cstdint>

#include "mpi/mpi.hpp"
#include "pmpi/functions.hpp"

namespace pario::pmpi {

using mpi::Library;

/// Which of the symbols of one function was called.
enum class Variant : std::uint8_t { plain, profiling, large, profiling_large };

/// The function behind ours, or null when no loaded MPI has it. The first call looks it up, later ones cost one load.
void* real(Id id, Variant variant);

}  // namespace pario::pmpi
