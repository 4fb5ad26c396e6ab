// The functions of the MPI behind those that this module defines.
#pragma once

#include <cstdint>

#include "core/mpi/mpi.hpp"
#include "observe/pmpi/functions.hpp"

namespace pario::pmpi {

using mpi::Library;

/// The symbols of one function.
enum class Variant : std::uint8_t { plain, profiling, large, profiling_large };

/// The function behind a symbol; null: no loaded MPI has it. The first call looks it up, later
/// calls cost one load.
void* real(Id id, Variant variant);

}  // namespace pario::pmpi
