// One call of an MPI function, from its arguments to its row in the log.
#pragma once

#include "observe/pmpi/functions.hpp"
#include "observe/pmpi/library.hpp"
#include "observe/pmpi/pmpi.hpp"

namespace pario::pmpi {

/// Forwards and records a call. Every symbol of functions.def calls it with its arguments, padded
/// to kMaxArguments words.
Word dispatch(Id id, Variant variant, Word* arguments);

/// A function of files on PMPI level: pario's own if its MPI-IO is on, otherwise the MPI's.
void* file_function(Id id);

struct Invocation {
  const Library& mpi;
  const Function& function;
  Id id;
  void* real;
  bool large;  ///< counts are MPI_Count instead of int
  Word* arguments;
  std::uint64_t start = 0, end = 0;  ///< ticks
  Word result = 0;
  Word own_status[8] = {};  ///< in place of MPI_STATUS_IGNORE; the largest status has 32 bytes
  trace::CallStart shown = {.function = number_in_log()};  ///< in the log during the call

  /// Calls the real function and measures its time.
  void run();
  trace::FunctionId number_in_log() const {
    return static_cast<trace::FunctionId>(kFirstId + static_cast<std::size_t>(id));
  }
  bool has_succeeded() const { return static_cast<int>(result) == 0; }
  Word operator[](int index) const { return arguments[index]; }
  int integer(int index) const { return static_cast<int>(arguments[index]); }
  /// Returns an argument that is int, or MPI_Count in the large form.
  std::int64_t count(int index) const {
    return large ? static_cast<std::int64_t>(arguments[index]) : integer(index);
  }
};

/// Runs and records a call that communicates.
Word communicate(Invocation& call);
/// Runs and records a call of MPI_File_*.
Word do_file_io(Invocation& call);

}  // namespace pario::pmpi
