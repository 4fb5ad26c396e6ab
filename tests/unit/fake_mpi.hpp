// A fake MPI with MPICH's interface that knows only the constructors of datatypes. It is a separate
// library, because pario looks for the MPI in the libraries after itself.
#pragma once

#include <cstdint>
#include <vector>

namespace pario::fake {

using Word = std::uintptr_t;

/// The results of MPI_Type_get_contents for a datatype, and its bounds.
struct Type {
  int combiner;  ///< its number in MPICH
  std::vector<int> integers = {};
  std::vector<std::intptr_t> addresses = {};
  std::vector<std::int64_t> counts = {};  ///< of constructors with large counts
  std::vector<Word> types = {};
  std::intptr_t lower = 0, extent = 0;
};

/// Makes a derived type, which is never freed.
Word make(Type type);
/// Counts the handles returned by MPI_Type_get_contents and not freed.
int count_borrowed();
/// Counts the calls of MPI_Type_get_contents.
int looks();

}  // namespace pario::fake
