// Weak references of programs that test whether the MPI has a function: they must show the MPI's
// functions, not pario's definitions.
#pragma once

namespace pario::pmpi {

/// Sets weak references of all loaded objects to null if they refer to functions that pario defines
/// and the loaded MPI lacks. Called once, when MPI is initialised.
void restore_weak_references();

}  // namespace pario::pmpi
