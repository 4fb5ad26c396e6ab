// Room replay: POSIX, stdio and blocking MPI-IO calls performed as they are written down, with nothing in between that costs time. They go
// through the symbols of the C library, so that whatever is preloaded sees them as it sees a program's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/base.hpp"

namespace pario::replay {

enum class Verb : std::uint16_t {
#define PARIO_VERB(name) name,
#include "replay/verbs.def"
#undef PARIO_VERB
  count
};

/// One operation, as the rows of Python's array have it (python/pario/replay/script.py, OPERATION). verbs.def says what a verb uses.
struct Operation {
  std::int64_t offset;
  std::int64_t length;
  std::uint64_t pause;  ///< nanoseconds before it
  std::uint32_t path;   ///< index
  std::uint32_t slot;   ///< an open file, from 0
  std::uint32_t other;
  Verb verb;
  std::uint16_t may_fail;  ///< 1: it failed when it was recorded
};
static_assert(sizeof(Operation) == 40);

/// A handle of the MPI of this process, as its functions take it: all their arguments are words (mpi/mpi.hpp).
using Word = std::uintptr_t;

/// What transfers through MPI need. `functions`: of MPI_File_write_at and its kin, by the numbers in `other`; null: not called here.
struct Mpi {
  std::vector<void*> functions;
  Word byte = 0;  ///< MPI_BYTE
};

/// The open files of one process. What is open at the end stays open until the process ends, as it would.
class Player {
 public:
  /// `largest`: the most bytes that one call moves.
  Player(std::vector<std::string> paths, std::size_t slots, std::size_t largest);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  /// Before transfers through MPI are played.
  void use(Mpi mpi);
  /// What a slot is to them.
  void use_file(std::size_t slot, Word file);

  /// Performs operations in their order; pauses only where `with_pauses`. Stops at the first that fails and should not.
  base::Status play(std::span<const Operation> operations, bool with_pauses);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace pario::replay
