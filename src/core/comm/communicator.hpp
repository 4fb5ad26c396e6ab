// A communicator of the MPI that belongs to pario: its duplication, its ranks and its release.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "core/comm/comm.hpp"
#include "core/comm/process_comm.hpp"
#include "core/mpi/mpi.hpp"

namespace pario::comm {

using mpi::Library;
using mpi::Word;

/// The facts of a rank that ranks exchange when a Comm is made.
struct Card {
  Member member = {};
  std::uint64_t known = 0;     ///< the Family that this rank has for these ranks; 0: none
  std::uint64_t proposed = 0;  ///< of rank 0: the number of a new one
  int number = 0;              ///< of rank 0: that of the new Comm in the known Family
  int pretend_nodes = 1;       ///< of rank 0: PARIO_NODES
};

/// The number of each rank in MPI_COMM_WORLD; -1 for ranks outside of it.
std::vector<int> world_ranks(const Library& mpi, Word communicator, int size);
/// Waits, with pauses, for a collective call of the MPI.
base::Status finish(const Library& mpi, Word request, const Patience& patience);
/// Collective: `each` bytes of every rank.
base::Status allgather_by_mpi(const Library& mpi, Word communicator, const void* mine,
                              std::size_t each, void* all, const Patience& patience = {});

/// A duplicate of a communicator. It is freed when MPI may be called: at the next duplication, or
/// in MPI_Finalize. A failed one is never freed, because it may hold messages that were not
/// received, which an MPI reports as an error.
class Communicator {
 public:
  /// Collective; null if the MPI or the wait failed.
  static std::shared_ptr<Communicator> duplicate(const Library& mpi, Word communicator,
                                                 const Patience& patience = {});
  Communicator(const Library& library, Word handle);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  const Library& mpi;
  const Word handle;
  /// Members of the Communicator keep their tags apart by numbers: a message's tag is number * 2^16
  /// + tag. Rank 0 gives them out, once each.
  int take_number() { return numbers_.fetch_add(1); }
  bool has_number(int number) const { return number <= largest_number_; }
  /// True if a Comm with this number can have duplicates.
  bool has_room_after(int number) const { return number <= largest_number_ / 2; }
  void mark_failed();

 private:
  std::atomic<int> numbers_{1};
  int largest_number_;
};

/// True once MPI_Finalize has begun: from then on no communicator may be used.
bool is_finalizing();
/// `at_finalize` is called once, before MPI_Finalize frees anything.
void watch_finalize(const Library& mpi, void (*at_finalize)());

/// Collective over `communicator`: the node number of each rank as the MPI reports it; empty if the
/// MPI failed.
std::vector<int> node_labels(const Library& mpi, Word communicator);
/// Divides each node into `parts` nodes of consecutive ranks.
std::vector<int> divide_nodes(std::span<const int> labels, int parts);

}  // namespace pario::comm
