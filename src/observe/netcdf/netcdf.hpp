// Module netcdf: records the calls of netCDF's C library and of PnetCDF in the process, of any
// version, without their headers.
//
// The library defines the functions of functions.def; each definition forwards its arguments, as
// machine words, to the library of its caller (core/symbols/libraries.hpp) and records the call in
// a row of layer netcdf or pnetcdf (module datasets). The row of a call on a variable has the path
// FILE:/GROUP/VARIABLE, and with PnetCDF FILE:VARIABLE; that of another call has the path of the
// file. The functions of a name for each type of memory (nc_put_vara_double) count as one.
// Libraries for Fortran, C++ and Python call these functions. Bytes are those of the elements in
// the file.
//
// The facts of a variable (shape, chunks, filters, chunk cache) are looked up at its first
// transfer, and noted once per record (docs/log-format.md, notes dataset and selection).
//
// A definition makes a name non-null for programs that test weak references. Without the library a
// call fails, and a message reports the first one. nc_inq_libvers and ncmpi_inq_libvers are not
// defined, so that tests of those names stay true.
#pragma once

#include <cstddef>
#include <span>

#include "core/trace/trace.hpp"

namespace pario::netcdf {

/// The function ids of this module begin here.
inline constexpr trace::FunctionId kFirstId = 928;

/// Fills in this module's rows of the table for trace::start().
void fill(std::span<trace::FunctionInfo, trace::kMaxFunctions> table);

/// Called in the child of a fork, which has rows of its own for the files of its parent.
void after_fork();

}  // namespace pario::netcdf
