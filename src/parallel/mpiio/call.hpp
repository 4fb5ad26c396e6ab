// One call of one MPI_File_* function, as its words arrived.
#pragma once

#include <cstdint>

#include "core/mpi/mpi.hpp"
#include "parallel/plan/plan.hpp"

namespace pario::mpiio {

using mpi::Word;

/// The offset at which a data access begins.
enum class Pointer : std::uint8_t { individual, given, shared };
/// The completion of a call: at return, by a request, or by the _end of a split collective.
enum class Completion : std::uint8_t { blocking, request, split };

/// The kind of data access of a function.
struct Kind {
  plan::Direction direction = plan::Direction::read;
  Pointer pointer = Pointer::individual;
  bool collective = false;
  Completion completion = Completion::blocking;
  bool operator==(const Kind&) const = default;
};

struct Call {
  const char* name;  ///< "MPI_File_read_at"
  const Word* words;
  bool large;  ///< counts are MPI_Count instead of int
  Kind kind = {};

  Word operator[](int index) const { return words[index]; }
  int integer(int index) const { return static_cast<int>(words[index]); }
  std::int64_t offset(int index) const { return static_cast<std::int64_t>(words[index]); }
  std::int64_t count(int index) const { return large ? offset(index) : integer(index); }
  template <class T>
  T* pointer(int index) const {
    return reinterpret_cast<T*>(words[index]);
  }
};

}  // namespace pario::mpiio
