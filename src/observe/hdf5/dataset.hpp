// The properties of a dataset, and of the selection of a call.
#pragma once

#include "observe/hdf5/objects.hpp"

namespace pario::hdf5 {

/// Returns the facts of a dataset with this row, and writes its note if `has_note`.
Object describe_dataset(const Library& library, Word id, trace::Record* record, bool has_note);

/// Returns the selection of a read or write that has succeeded, and notes the first one of each
/// open dataset.
Selection selection_of(const Library& library, Word dataset, const Object& object, trace::Op op,
                       Word memory, Word file);

}  // namespace pario::hdf5
