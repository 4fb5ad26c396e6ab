// Room exchange: moves bytes between ranks as a Plan says, and has windows read and written.
//
// Inside a node every rank copies its pieces straight to their final place in a shared window, marks them in a coverage bitmap of its own,
// and whoever completes a window writes it; windows go through a ring of slots, so that filling and writing overlap. Between nodes the
// same windows are filled, and whoever completes one that another node owns sends the covered bytes there as one message; the owner
// merges them as they come. Reads go the other way: whoever comes first reads a window, the others copy from it; a window of another node
// is asked for by one message and comes back as one. Waiting is on futexes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/base.hpp"
#include "comm/comm.hpp"
#include "pattern/pattern.hpp"
#include "plan/plan.hpp"
#include "trace/trace.hpp"

namespace pario::exchange {

/// What a rank brings to a collective call; plain words, sent as they are.
struct Notice {
  std::uint64_t sequence = 0;  ///< number of the collective call on this file
  std::uint32_t call = 0;      ///< which function
  std::uint32_t failed = 0;    ///< 1: this rank cannot take part
  std::uint32_t missed = 0;    ///< a call in which this rank has not taken part before this one; 0: none
  std::uint64_t check = 0;     ///< hash of the arguments that must be equal on all ranks; 0 otherwise
  pattern::Summary summary = {};
};

/// Counted and timed while windows move; added up over calls. Times are nanoseconds of this rank.
struct Tally {
  std::uint64_t wait_ns = 0;     ///< for other ranks
  std::uint64_t copy_ns = 0;     ///< between user memory and windows
  std::uint64_t message_ns = 0;  ///< between nodes
  std::uint64_t file_ns = 0;     ///< in reads and writes of the file
  std::uint64_t messages = 0, message_bytes = 0;
  std::uint64_t file_writes = 0, file_write_bytes = 0, file_reads = 0, file_read_bytes = 0;
  std::uint64_t whole_units = 0;  ///< writes that were whole stripes or lock units
  std::uint64_t modified = 0;     ///< windows that were read to be written back
  std::uint64_t hole_bytes = 0;
};

/// Where windows come from and go to. Called by several ranks and threads at a time.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual base::Status write(std::uint64_t offset, std::span<const std::byte> data) = 0;
  /// Bytes past the end of the file are zero-filled in `data`; the result counts those before it.
  virtual base::Result<std::uint64_t> read(std::uint64_t offset, std::span<std::byte> data) = 0;
};

/// What the engine decides for a window with holes.
using ChooseHoles = plan::Holes (*)(std::uint64_t runs, std::uint64_t covered, std::uint64_t holes, const void* context);

/// The meeting place of the ranks of one communicator, with its ring of windows. One per stream of collective calls (a file's blocking
/// calls and its non-blocking ones are two). All functions are collective over the communicator, in the same order on all ranks.
class Exchange {
 public:
  /// Memory for windows is made at the first run() that needs it; `bytes_limit` bounds it per node. Where there is none, or a rank has
  /// died, the Comm fails, and all calls of all ranks end with its error.
  Exchange(std::shared_ptr<comm::Comm> comm, std::uint64_t bytes_limit, const comm::Patience& patience = {});
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Waits for all ranks and gives everybody's notices, in rank order; valid until the next call.
  base::Result<std::span<const Notice>> meet(const Notice& mine, const comm::Patience& patience);

  /// Carries out a plan of way `windows`. A failure of the file on one rank stops nobody: the others go on to the end, agree() tells.
  base::Status run(const plan::Plan& plan, const pattern::Access& access, Sink& sink, ChooseHoles choose, const void* context,
                   const comm::Patience& patience, Tally& tally);
  /// Reads: bytes of this rank's access that lay before the end of the file, after run().
  std::uint64_t bytes_read() const;

  /// The same outcome on all ranks: the error of the lowest rank that has one.
  base::Status agree(const base::Status& mine, const comm::Patience& patience);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pario::exchange
