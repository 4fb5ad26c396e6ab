// Module exchange: executes a Plan: two-phase I/O through collective buffers.
//
// Inside a node every rank copies its pieces to their final place in a window of shared memory and
// marks them in its own coverage bitmap; the rank that completes a window writes it. Windows go
// through a ring of slots, so that filling and writing overlap. Between nodes, the rank that
// completes a window of another node sends the covered bytes there as one message, and the owner
// merges the messages as they arrive. Reads go the other way: one rank reads a window, the others
// copy from it; a window of another node needs one request and one reply. Waits are on futexes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/base.hpp"
#include "core/comm/comm.hpp"
#include "core/pattern/pattern.hpp"
#include "core/trace/trace.hpp"
#include "parallel/exchange/counters.hpp"
#include "parallel/exchange/hole_writer.hpp"
#include "parallel/plan/plan.hpp"

namespace pario::exchange {

/// One rank's part of a collective call; plain words, sent unchanged.
struct Notice {
  std::uint64_t sequence = 0;  ///< number of the collective call on this file
  std::uint32_t call = 0;      ///< the function as a number
  std::uint32_t failed = 0;    ///< 1: this rank cannot take part
  std::uint32_t missed = 0;    ///< an earlier call that this rank has missed; 0: none
  std::uint16_t deferred = 0;  ///< 1: an earlier call of this rank alone has failed
  std::uint16_t needs = 0;     ///< bits whose meaning is that of the call
  std::uint64_t check = 0;  ///< hash of the arguments that must be equal on all ranks; 0 otherwise
  pattern::Summary summary = {};
};

/// The ranks of one communicator with their ring of windows. One for each sequence of collective
/// calls (the blocking and the non-blocking calls of a file are two). All functions are collective
/// over the communicator, in the same order on all ranks; one thread of a rank uses it at a time.
class Exchange {
 public:
  /// The exchange of a communicator. The first run() that needs windows allocates their memory, at
  /// most `bytes_limit` per node. If the allocation fails, or a rank has died, the Comm fails, and
  /// all calls of all ranks end with its error.
  Exchange(std::shared_ptr<comm::Comm> comm, std::uint64_t bytes_limit,
           const comm::Patience& patience = {});
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Waits for all ranks and returns their notices in rank order, valid until the next call.
  base::Result<std::span<const Notice>> meet(const Notice& mine, const comm::Patience& patience);
  std::span<const Notice> notices() const;  ///< of the last meeting

  /// Executes a plan of way `windows`. After an error of the file on one rank the other ranks
  /// continue to the end; agree() shares the error.
  base::Status run(const plan::Plan& plan, const pattern::Access& access, WindowFile& file,
                   const comm::Patience& patience, Counters& counters);
  /// Returns the bytes of this rank's read before the end of the file, after run().
  std::uint64_t bytes_read() const;

  /// Returns the same outcome on all ranks: the error of the lowest rank that has one.
  base::Status agree(const base::Status& mine, const comm::Patience& patience);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pario::exchange
