#include "parallel/mpiio/contents.hpp"

#include "parallel/mpiio/library.hpp"

namespace pario::mpiio {
namespace {

/// Gets the numbers of integers, addresses, large counts and types; returns the combiner.
int envelope(Word type, std::int64_t (&sizes)[4]) {
  int combiner = k(MPI_COMBINER_NAMED);
  if (lib().type_envelope_c) {
    lib().type_envelope_c(type, &sizes[0], &sizes[1], &sizes[2], &sizes[3], &combiner);
    return combiner;
  }
  int small[3] = {};
  lib().type_envelope(type, &small[0], &small[1], &small[2], &combiner);
  sizes[0] = small[0], sizes[1] = small[1], sizes[2] = 0, sizes[3] = small[2];
  return combiner;
}

bool is_predefined(int combiner) {
  return combiner == k(MPI_COMBINER_NAMED) || combiner == k(MPI_COMBINER_F90_REAL) ||
         combiner == k(MPI_COMBINER_F90_COMPLEX) || combiner == k(MPI_COMBINER_F90_INTEGER);
}

}  // namespace

int combiner_of(Word type) {
  std::int64_t sizes[4] = {};
  return envelope(type, sizes);
}

bool is_named(Word type) { return is_predefined(combiner_of(type)); }

Contents::Contents(Word type) {
  std::int64_t sizes[4] = {};
  combiner_ = envelope(type, sizes);
  if (!is_predefined(combiner_)) read(type, sizes);
}

Contents::~Contents() {
  for (Word type : types_) {
    if (!is_named(type)) lib().type_free(&type);
  }
}

void Contents::read(Word type, const std::int64_t (&sizes)[4]) {
  std::vector<int> integers(sizes[0] + 1);
  std::vector<std::intptr_t> addresses(sizes[1] + 1);
  std::vector<std::int64_t> counts(sizes[2] + 1);
  std::vector<Word> handles(sizes[3] + 1);
  if (lib().type_contents_c)
    lib().type_contents_c(type, sizes[0], sizes[1], sizes[2], sizes[3], integers.data(),
                          addresses.data(), counts.data(), handles.data());
  else
    lib().type_contents(type, static_cast<int>(sizes[0]), static_cast<int>(sizes[1]),
                        static_cast<int>(sizes[3]), integers.data(), addresses.data(),
                        handles.data());
  integers_ = sizes[0];
  numbers_.assign(integers.begin(), integers.end() - 1);
  numbers_.insert(numbers_.end(), addresses.begin(), addresses.end() - 1);
  numbers_.insert(numbers_.end(), counts.begin(), counts.end() - 1);
  for (int i = 0; i < sizes[3]; ++i)
    types_.push_back(lib().handle_at(reinterpret_cast<Word>(handles.data()), i));
}

}  // namespace pario::mpiio
