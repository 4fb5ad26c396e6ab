// Programs that ask by a weak reference whether the MPI has a function must get the MPI's answer, not ours.
#pragma once

namespace pario::pmpi {

/// Sets weak references of all loaded objects to functions that we define and the loaded MPI has not, back to null.
void restore_weak_references();

}  // namespace pario::pmpi
