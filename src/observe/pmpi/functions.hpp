// The table of functions.def as data.
#pragma once

#include <cstdint>

#include "core/mpi/mpi.hpp"
#include "core/symbols/words.hpp"
#include "core/trace/trace.hpp"

namespace pario::pmpi {

using mpi::Word;
inline constexpr std::size_t kMaxArguments = symbols::kMostWords;

/// The relation of a call to a communicator, and its effect on the tracer's state.
enum class Role : std::uint8_t {
  local,      ///< argument `comm` (or none), no order between ranks
  all,        ///< collective over `comm`
  begin,      ///< collective over `comm`, returns before it is complete
  free_comm,  ///< collective over the communicator that `comm` points to; frees it
  make_win,   ///< collective over `comm`; creates the window of the last argument
  local_win,  ///< argument `comm` is a window
  all_win,    ///< collective over the window `comm`
  free_win,   ///< collective over the window that `comm` points to; frees it
  init,
  finalize,
  abort,
  file,   ///< MPI_File_*
  quiet,  ///< forwarded, never recorded
};

enum class Counts : std::uint8_t { one, per_rank, own, per_rank_typed };

/// The indices of the arguments that describe a buffer. Negative: none.
struct Operand {
  std::int8_t buffer = -1, count = -1, type = -1;
  Counts counts = Counts::one;  ///< per_rank: arrays over the ranks; own: this rank's element of
                                ///< such an array; typed: of types too
};

/// The indices of the arguments of a communication call.
struct Shape {
  Operand moved = {};       ///< the bytes of the call
  Operand in_place = {};    ///< used instead if moved.buffer is MPI_IN_PLACE
  bool times_size = false;  ///< once per rank of the communicator
  std::int8_t peer = -1, tag = -1, status = -1;
};

/// The way in which an MPI_File_ function moves data. The arguments are always (file, [offset,]
/// buffer, count, type, [status or request]).
enum How : std::uint8_t {
  kPlain = 0,
  kAll = 1,
  kAt = 2,
  kSharedPointer = 4,
  kNonblocking = 8,
  kSplit = 16
};

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
#include "observe/pmpi/functions.def"
#undef PARIO_MPI
#undef PARIO_MPI_FILE
#undef PARIO_MPI_QUIET
  count
};

extern const Function kFunctions[static_cast<std::size_t>(Id::count)];

}  // namespace pario::pmpi
