// A call on an open file: finds the file and raises what comes of the call.
#pragma once

#include <utility>

#include "mpiio/file.hpp"
#include "mpiio/library.hpp"

namespace pario::mpiio {

/// `body(File&)` returns an Outcome; the first argument of the call is the file.
template <class Body>
Word on_file(const Call& call, Body&& body) {
  const auto file = find(call[0]);
  if (!file) return raise(nullptr, refuse(k(MPI_ERR_FILE), call, "this is no open file"));
  return raise(file.get(), std::forward<Body>(body)(*file));
}

/// Collective: an error on all ranks where one has one, so that nobody waits for a rank that has left a collective call.
Outcome agree(const Call& call, File& file, const Outcome& mine);

}  // namespace pario::mpiio
