// An MPI (of MPICH's interface) that knows nothing but how datatypes were made. A library of its
// own, because pario looks for the MPI behind itself.
#pragma once

#include <cstdint>
#include <vector>

namespace pario::fake {

using Word = std::uintptr_t;

/// What MPI_Type_get_contents answers, and the bounds.
struct Type {
  int combiner;  ///< its number in MPICH
  std::vector<int> integers = {};
  std::vector<std::intptr_t> addresses = {};
  std::vector<std::int64_t> counts = {};  ///< of constructors with large counts
  std::vector<Word> types = {};
  std::intptr_t lower = 0, extent = 0;
};

/// A derived type, which lives as long as the program.
Word make(Type type);
/// Handles that MPI_Type_get_contents has given and nobody has freed.
int borrowed();
/// Calls of MPI_Type_get_contents.
int looks();

}  // namespace pario::fake
