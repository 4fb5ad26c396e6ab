// Module hdf5: records the HDF5 calls of the process, for any HDF5 from 1.10 on, without hdf5.h.
//
// The library defines the functions of functions.def; each definition forwards its arguments, as
// machine words, to the HDF5 of its caller and records the call in a row of layer hdf5. The row of
// a call on a dataset has the path FILE:/NAME/OF/DATASET, that of another call the path of the
// file. A process may have several HDF5 libraries (the wheels of h5py and netCDF4 bring their own):
// the definition that the dynamic linker would have bound the caller to is called (library.hpp).
// An older HDF5, and a program whose HDF5 is linked statically, are not recorded.
//
// Calls on files and of MPI inside a call keep rows of their own; the row of the HDF5 call counts
// their time and bytes (inner_...), so that the rest is the time inside HDF5. HDF5 functions that
// HDF5 libraries call (libhdf5_hl, libhdf5_cpp) are counted once.
//
// The facts of a dataset (chunks, filters, chunk cache) are looked up when it is opened, and noted
// once per record (docs/log-format.md, notes dataset and selection).
//
// A definition makes a name non-null for programs that test weak references. Without HDF5 a call
// fails, and a message reports the first one. H5open and H5get_libversion are not defined, so that
// tests of those names stay true.
#pragma once

#include <cstddef>
#include <span>

#include "core/trace/trace.hpp"

namespace pario::hdf5 {

/// The function ids of this module begin here.
inline constexpr trace::FunctionId kFirstId = 896;

/// Fills in this module's rows of the table for trace::start().
void fill(std::span<trace::FunctionInfo, trace::kMaxFunctions> table);

/// Called in the child of a fork, which has rows of its own for the objects of its parent.
void after_fork();

}  // namespace pario::hdf5
