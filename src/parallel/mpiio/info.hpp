// MPI_Info and hints.
#pragma once

#include <string>
#include <vector>

#include "parallel/engine/engine.hpp"
#include "parallel/mpiio/call.hpp"
#include "parallel/mpiio/errors.hpp"

namespace pario::mpiio {

struct Hints {
  hints::FileHints values = {};
  std::vector<hints::Setting> requested = {};
  std::vector<hints::Rejected> rejected = {};
};

/// Applies an Info (may be MPI_INFO_NULL) and then the environment, whose settings take precedence:
/// the user overrides the program.
Hints hints_for(const std::string& path, Word info);
/// Applies an Info and the environment on top of the hints `before` of an open file, to which the
/// environment applies already.
Hints hints_on_top(const hints::FileHints& before, const std::string& path, Word info);
/// Returns an error if hints are strict and one was rejected.
Outcome check(const Hints& hints, const Call& call);

/// Frees the Info that get_info() keeps for a file.
void release_info(OpenFile& file);

}  // namespace pario::mpiio
