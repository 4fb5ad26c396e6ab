// Communicators and windows: their numbers in this process's log, their common ids, and the order
// of collective calls on them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "observe/pmpi/library.hpp"

namespace pario::pmpi {

struct Communicator {
  std::uint32_t number = 0;  ///< of the communicator note; from 1
  Word handle = 0;
  std::uint64_t id = 0;  ///< equal on all ranks; 0: not agreed yet, or an intercommunicator
  int size = 0;          ///< of the local group
  int rank = 0;
  bool inter = false;
  std::vector<int> world_ranks;         ///< of its members; empty: unknown
  std::atomic<std::uint64_t> calls{0};  ///< number of collective calls

  /// The rank of member `peer` in MPI_COMM_WORLD; empty: unknown.
  std::optional<int> world_rank(int peer) const;
};

/// Registers MPI_COMM_WORLD after MPI_Init; before, only sizes are known.
void set_world(const Library& mpi);

/// Finds the communicator of a valid handle; registers and notes a new one.
Communicator& communicator(const Library& mpi, Word handle);
/// Finds the communicator of a handle, which may be invalid; null: unknown.
std::shared_ptr<Communicator> known_communicator(Word handle);
/// The same, valid until the communicator is freed.
const Communicator* find_communicator(Word handle);
void forget_communicator(Word handle);

/// Gives a communicator its common id by a broadcast. Collective over its ranks: only within a
/// blocking collective call that has just succeeded.
void agree_on_id(const Library& mpi, Communicator& comm);

/// The windows, by the communicator on which they were created.
void add_window(Word window, Word comm);
std::shared_ptr<Communicator> window(Word window);
void forget_window(Word window);

}  // namespace pario::pmpi
