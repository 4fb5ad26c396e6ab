// The open files and variables, with the facts that recorded calls need.
#pragma once

#include "observe/datasets/datasets.hpp"
#include "observe/netcdf/library.hpp"

namespace pario::netcdf::variables {

using datasets::Object;
using datasets::Selection;

/// Returns an open file; looks its name up where that is needed.
Object find_file(const Library& library, int file);
/// Returns a variable of an open file; looks its facts up at the first call, and notes them.
Object find(const Library& library, int file, int variable);
/// Returns the facts that are known without a call of the library.
Object find_known(const Library& library, int file, int variable);
/// Sets whether the transfers of a variable are collective.
void set_collective(const Library& library, int file, int variable, bool is_collective);
/// Notes the shapes of the variables of an open file again: record dimensions grow.
void note_shapes(const Library& library, int file);
/// Forgets a file that was closed.
void forget_file(const Library& library, int file);
/// Replaces the rows of the parent in the child of a fork.
void renew_records();

/// Returns the selection of a transfer that has succeeded, and notes the first one of each variable
/// in each direction.
Selection selection_of(const Library& library, const datasets::Call& call, Role role,
                       const Object& object);

}  // namespace pario::netcdf::variables
