// How a datatype was made.
#pragma once

#include <vector>

#include "mpiio/call.hpp"

namespace pario::mpiio {

/// What MPI_Type_get_envelope and MPI_Type_get_contents say, the same for int and large constructors. Owns the types it lists.
class Contents {
 public:
  explicit Contents(Word type);
  ~Contents();
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  int combiner() const { return combiner_; }
  /// Integers, then addresses, then large counts: but for subarrays and darrays this is the order of the constructor's arguments.
  const std::vector<std::int64_t>& numbers() const { return numbers_; }
  /// Of subarrays and darrays: the small ones and the large ones.
  std::size_t integers() const { return integers_; }
  const std::vector<Word>& types() const { return types_; }

 private:
  void read(Word type, const std::int64_t (&sizes)[4]);
  void read_large(Word type, const std::int64_t (&sizes)[4]);

  int combiner_ = 0;
  std::size_t integers_ = 0;
  std::vector<std::int64_t> numbers_;
  std::vector<Word> types_;
};

/// The combiner of a type, as MPI_Type_get_envelope says it.
int combiner_of(Word type);

}  // namespace pario::mpiio
