// The open files and datasets of HDF5, with the facts that recorded calls need.
#pragma once

#include "observe/datasets/datasets.hpp"
#include "observe/hdf5/library.hpp"

namespace pario::hdf5 {

using datasets::Extents;
using datasets::kMostDimensions;
using datasets::Object;
using datasets::Selection;

namespace objects {

/// Returns the facts of an object that was looked up before; without record if it was not.
Object find_known(const Library& library, Word id);
/// Returns the facts of an object; looks it up where that is needed, which calls HDF5. `id` is
/// valid. The dataset's name is not known then: HDF5 may search the whole file for it.
Object find(const Library& library, Word id);
/// Enters a file that was just opened.
Object enter_file(const Library& library, Word id);
/// Enters a dataset or group that was just opened by its name (null: it has none), and notes the
/// facts of a dataset. `is_new`: the dataset was just created.
Object enter(const Library& library, Word id, Word location, const char* name, bool is_new);
/// Forgets a closed object.
void forget(const Library& library, Word id);
/// Forgets all objects, and all facts of datasets.
void forget_all();
/// Replaces the rows of the parent in the child of a fork, which has the parent's open objects.
void renew_records();
/// Marks an object whose selection was noted.
void set_noted(const Library& library, Word id, trace::Op op);

/// Returns the row of a file by its name; null: not traced.
trace::Record* record_of_file(const char* name);

}  // namespace objects

}  // namespace pario::hdf5
