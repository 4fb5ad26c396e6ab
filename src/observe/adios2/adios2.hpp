// Module adios2: records the calls of ADIOS2 in the process, of any version with the C++11 ABI,
// without its headers.
//
// ADIOS2's bindings for C, C++, Fortran and Python all call the C++ functions of
// adios2::core::Engine and adios2::core::IO in libadios2_core, which functions.def lists by their
// mangled names; those that are virtual are found by the library's tables of virtual functions,
// which refer to them by name. Each definition forwards its arguments to the library of its caller
// (core/symbols/libraries.hpp) and records the call in a row of layer adios2 (module datasets). The
// row of a Put or Get has the path FILE:/VARIABLE, that of another call the path of the file. The
// functions for each type of memory count as one. Bytes are those of the selected elements; a
// deferred Put or Get counts as non-blocking: PerformPuts, PerformGets, EndStep or Close move it.
//
// ADIOS2 reports errors by exceptions: a call that ends by one is not counted. No frame of this
// module has a clean-up, for the reason that trace::ShownCall gives.
#pragma once

#include <cstddef>
#include <span>

#include "core/trace/trace.hpp"

namespace pario::adios2 {

/// The function ids of this module begin here.
inline constexpr trace::FunctionId kFirstId = 1014;

/// Fills in this module's rows of the table for trace::start().
void fill(std::span<trace::FunctionInfo, trace::kMaxFunctions> table);

/// Called in the child of a fork, which has rows of its own for the files of its parent.
void after_fork();

}  // namespace pario::adios2
