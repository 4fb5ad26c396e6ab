// What is known of each MPI function: the table of functions.def as data.
#pragma once

#include <cstdint>

#include "mpi/mpi.hpp"
#include "trace/trace.hpp"

namespace pario::pmpi {

using mpi::Word;
inline constexpr std::size_t kMaxArguments = 14;

/// How a call relates to a communicator, and what else it does to the tracer's state.
enum class Role : std::uint8_t {
  local,      ///< argument `comm` (or none), no order between ranks
  all,        ///< collective over `comm`
  begin,      ///< collective over `comm`, returns before it is complete
  free_comm,  ///< collective over the communicator that `comm` points to, which ends
  make_win,   ///< collective over `comm`; makes the window that the last argument points to
  local_win,  ///< argument `comm` is a window
  all_win,    ///< collective over the window `comm`
  free_win,   ///< collective over the window that `comm` points to, which ends
  init,
  finalize,
  abort,
  file,   ///< MPI_File_*
  quiet,  ///< forwarded, never recorded
};

enum class Counts : std::uint8_t { one, per_rank, own, per_rank_typed };

/// Where in the argument list a buffer is described. Negative: not there.
struct Operand {
  std::int8_t buffer = -1, count = -1, type = -1;
  Counts counts = Counts::one;  ///< per_rank: arrays over the ranks; own: this rank's element of such an array; typed: of types too
};

/// What can be read from the arguments of a communication call.
struct Shape {
  Operand moved = {};       ///< the bytes of the call
  Operand in_place = {};    ///< instead, when moved.buffer is MPI_IN_PLACE
  bool times_size = false;  ///< once per rank of the communicator
  std::int8_t peer = -1, tag = -1, status = -1;
};

/// How an MPI_File_ function moves data. The arguments are always (file, [offset,] buffer, count, type, [status or request]).
enum How : std::uint8_t { kPlain = 0, kAll = 1, kAt = 2, kSharedPointer = 4, kNonblocking = 8, kSplit = 16 };

struct Function {
  const char* name;  ///< without MPI_
  std::uint8_t args;
  const char* category;
  Role role;
  std::int8_t comm;  ///< index of the communicator, window or file argument
  Shape shape;
  trace::Op op;      ///< files only
  std::uint8_t how;  ///< files only
};

enum class Id : std::uint16_t {
#define PARIO_MPI(name, ...) name,
#define PARIO_MPI_FILE(name, ...) name,
#define PARIO_MPI_QUIET(name, ...) name,
#include "pmpi/functions.def"
#undef PARIO_MPI
#undef PARIO_MPI_FILE
#undef PARIO_MPI_QUIET
  count
};

extern const Function kFunctions[static_cast<std::size_t>(Id::count)];

}  // namespace pario::pmpi
