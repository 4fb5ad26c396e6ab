// A call on an open file: finds the file and raises the error of the call.
#pragma once

#include <utility>

#include "parallel/mpiio/file.hpp"
#include "parallel/mpiio/library.hpp"

namespace pario::mpiio {

/// Returns the error of a call with an invalid file handle. If the call is collective, other ranks
/// may wait for this one in any of the open files: they get the error with this rank's next
/// collective call on that file.
Outcome bad_handle(const Call& call);

/// Calls `body(OpenFile&)`, which returns an Outcome; the first argument of the call is the file.
template <class Body>
Word on_file(const Call& call, Body&& body) {
  OpenFile* const file = find_in_use(call[0]);
  if (file == nullptr) return raise(nullptr, bad_handle(call));
  return raise(file, std::forward<Body>(body)(*file));
}

/// Collective: an error on all ranks if one has an error, or if `hash` (of arguments that must be
/// equal) differs.
Outcome agree(const Call& call, OpenFile& file, const Outcome& mine, std::uint64_t hash = 0);
/// Returns the outcome of a collective call: the own error `mine`, else the error `agreed` of all
/// ranks.
Outcome outcome_of_all(const Call& call, const Outcome& mine, const base::Status& agreed);

}  // namespace pario::mpiio
