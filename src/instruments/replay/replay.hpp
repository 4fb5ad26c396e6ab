// Module replay: performs recorded POSIX, stdio and blocking MPI-IO calls, with no work in between.
// Calls go through the symbols of the C library, so that preloaded libraries intercept them like a
// program's calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"

namespace pario::replay {

enum class Verb : std::uint16_t {
#define PARIO_VERB(name) name,
#include "instruments/replay/verbs.def"
#undef PARIO_VERB
  count
};

/// One operation; the fields of Python's array (python/pario/prove/replay/script.py, OPERATION).
/// verbs.def lists the fields that each verb uses.
struct Operation {
  std::int64_t offset;
  std::int64_t length;
  std::uint64_t pause;  ///< nanoseconds before the call
  std::uint32_t path;   ///< index of the path
  std::uint32_t slot;   ///< an open file, from 0
  std::uint32_t other;
  Verb verb;
  std::uint16_t may_fail;  ///< 1: the recorded call failed
};
static_assert(sizeof(Operation) == 40);

/// A handle of the MPI of this process as its functions expect it: all arguments are words
/// (core/mpi/mpi.hpp).
using Word = std::uintptr_t;

/// The functions and constants for transfers through MPI. `functions`: MPI_File_write_at and its
/// relatives, by the numbers in `other`; null: not used.
struct Mpi {
  std::vector<void*> functions;
  Word byte = 0;  ///< MPI_BYTE
};

/// The open files of one process; used by one thread. Files that are open at the end stay open
/// until the process ends, as in the recorded run.
class Player {
 public:
  /// `largest`: the most bytes of one call.
  Player(std::vector<std::string> paths, std::size_t slots, std::size_t largest);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  /// Sets the functions of MPI, before play() if there are transfers through MPI.
  void set_mpi(Mpi mpi);
  /// Sets the MPI file of a slot.
  void set_file(std::size_t slot, Word file);

  /// Performs operations in their order, with pauses if `with_pauses`. Stops at the first failure
  /// of an operation that succeeded when recorded.
  base::Status play(std::span<const Operation> operations, bool with_pauses);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace pario::replay
