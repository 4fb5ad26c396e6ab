// MPI_Info and hints.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "mpiio/call.hpp"
#include "mpiio/errors.hpp"

namespace pario::mpiio {

struct Hints {
  hints::FileHints values = {};
  std::vector<hints::Setting> requested = {};
  std::vector<hints::Rejected> rejected = {};
};

/// Applies an Info (may be MPI_INFO_NULL) and then the environment, whose settings win: it is the user's last word on a program.
Hints hints_for(const std::string& path, Word info);
/// The same on top of hints that a file has.
Hints hints_on_top(const hints::FileHints& before, const std::string& path, Word info);
/// What MPI_File_get_info answers: the hints in force, and of striping only what the file system has.
std::vector<hints::Setting> effective(const hints::FileHints& hints);
/// An error where hints are strict and one was not taken.
Outcome check(const Hints& hints, const Call& call);

}  // namespace pario::mpiio
