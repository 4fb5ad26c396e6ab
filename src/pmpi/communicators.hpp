// Communicators and windows: their numbers in this process's log, their common ids, and the order of collective calls on them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pmpi/library.hpp"

namespace pario::pmpi {

struct Communicator {
  std::uint32_t number = 0;  ///< of the communicator note; from 1
  Word handle = 0;
  std::uint64_t id = 0;  ///< the same on all its ranks; 0 while not agreed, and for intercommunicators
  int size = 0;          ///< of the local group
  int rank = 0;
  bool inter = false;
  std::vector<int> world_ranks;         ///< of its members; empty: not known
  std::atomic<std::uint64_t> calls{0};  ///< collective calls so far

  /// The rank in MPI_COMM_WORLD of member `peer`, when that can be known.
  std::optional<int> world_rank(int peer) const;
};

/// From MPI_Init on; before, only sizes are known.
void set_world(const Library& mpi);

/// The communicator of a valid handle; made known when it is new.
Communicator& communicator(const Library& mpi, Word handle);
/// As above, only if it is known already; null otherwise (the handle need not be valid).
std::shared_ptr<Communicator> known_communicator(Word handle);
void forget_communicator(Word handle);

/// Gives the communicator its common id, by a broadcast. Call it in a blocking collective call that has just succeeded.
void agree(const Library& mpi, Communicator& comm);

/// A window stands for the communicator it was made on.
void add_window(Word window, Word comm);
std::shared_ptr<Communicator> window(Word window);
void forget_window(Word window);

}  // namespace pario::pmpi
