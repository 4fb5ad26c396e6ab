// The properties of a dataset, and of the selection of a call.
#pragma once

#include "observe/hdf5/objects.hpp"

namespace pario::hdf5 {

/// Returns the facts of a dataset with this row, and writes its note if `has_note`.
Object describe_dataset(const Library& library, Word id, trace::Record* record, bool has_note);

/// The elements of a call on a dataset.
struct Selection {
  std::uint64_t points = 0;
  std::uint64_t chunks = 0;  ///< that have some of them, by the box around them; 0: not chunked
  int rank = 0;              ///< of the box; 0: not known
  Extents box = {};          ///< extents of the box
};

/// Returns the selection of a read or write that has succeeded, and notes the first one of each
/// open dataset.
Selection selection_of(const Library& library, Word dataset, const Object& object, trace::Op op,
                       Word memory, Word file);

/// Forgets the notes that were written: the child of a fork has a log of its own.
void forget_notes();

}  // namespace pario::hdf5
