// A call on an open file: finds the file and raises what comes of the call.
#pragma once

#include <utility>

#include "mpiio/file.hpp"
#include "mpiio/library.hpp"

namespace pario::mpiio {

/// The error of a call whose file handle is none. Where the call is collective, other ranks may
/// wait for this one in any of the files that are open here: they get the error with its next
/// collective call on that file.
Outcome bad_handle(const Call& call);

/// `body(File&)` returns an Outcome; the first argument of the call is the file.
template <class Body>
Word on_file(const Call& call, Body&& body) {
  const auto file = find(call[0]);
  if (!file) return raise(nullptr, bad_handle(call));
  return raise(file.get(), std::forward<Body>(body)(*file));
}

/// Collective: an error on all ranks where one has one, or where `hash` (of arguments that must be
/// equal) differs.
Outcome agree(const Call& call, File& file, const Outcome& mine, std::uint64_t hash = 0);

}  // namespace pario::mpiio
