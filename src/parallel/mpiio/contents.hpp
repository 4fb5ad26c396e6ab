// The constructor and the arguments of a datatype.
#pragma once

#include <vector>

#include "parallel/mpiio/call.hpp"

namespace pario::mpiio {

/// The envelope and contents of a datatype, in one form for int and large constructors. Owns the
/// types it lists.
class Contents {
 public:
  explicit Contents(Word type);
  ~Contents();
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  int combiner() const { return combiner_; }
  /// Integers, then addresses, then large counts: the order of the constructor's arguments, except
  /// for subarrays and darrays.
  const std::vector<std::int64_t>& numbers() const { return numbers_; }
  /// The number of integers; in subarrays and darrays the rest are large counts.
  std::size_t integers() const { return integers_; }
  const std::vector<Word>& types() const { return types_; }

 private:
  void read(Word type, const std::int64_t (&sizes)[4]);

  int combiner_ = 0;
  std::size_t integers_ = 0;
  std::vector<std::int64_t> numbers_;
  std::vector<Word> types_;
};

/// Returns the combiner of a type (MPI_Type_get_envelope).
int combiner_of(Word type);
/// True for types that no constructor has made: basic types, and those of Fortran by precision.
bool is_named(Word type);

}  // namespace pario::mpiio
