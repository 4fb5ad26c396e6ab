// Room engine: many ranks, one file. The only room that strings the stages together: access -> summary -> plan -> exchange -> storage.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "comm/comm.hpp"
#include "exchange/exchange.hpp"
#include "hints/hints.hpp"
#include "pattern/pattern.hpp"
#include "plan/plan.hpp"
#include "storage/storage.hpp"

namespace pario::engine {

/// Whether the ranks make a call together.
enum class With : std::uint8_t { alone, together };

struct OpenRequest {
  std::string path;
  int flags = 0;  ///< open(2): O_RDONLY ... O_CREAT, O_EXCL
  unsigned mode = 0666;
  bool delete_on_close = false;
  hints::FileHints hints;
  std::vector<hints::Setting> requested = {};  ///< for the audit: what the program and the environment asked for
  std::vector<hints::Rejected> rejected = {};  ///< and what of it was not taken
};

/// Requested, applied, effective: one line of the hint audit.
struct HintOutcome {
  std::string key = {}, requested = {}, applied = {}, effective = {}, reason = {};
};

/// Cray-like statistics of a file since it was opened, of this rank; reduced over ranks at close (on rank 0).
struct Statistics {
  std::uint64_t collective_writes = 0, collective_reads = 0, independent_writes = 0, independent_reads = 0;
  std::uint64_t bytes_written = 0, bytes_read = 0;   ///< of the program
  std::uint64_t direct_calls = 0, window_calls = 0;  ///< collective calls by their way
  std::uint64_t sieved_calls = 0;
  std::uint64_t behind_calls = 0, behind_writes = 0;     ///< independent writes that were kept back, and the writes of the file they became
  std::uint64_t merged_calls = 0, merged_exchanges = 0;  ///< collective writes that were kept back, and the exchanges they became
  std::uint64_t total_ns = 0;                            ///< in collective and independent calls
  exchange::Tally tally = {};
};

/// A non-blocking call under way.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Thread-safe. Does not block, but for one case: where no thread of pario's own may communicate (several nodes, and the program has not
  /// asked for MPI_THREAD_MULTIPLE) done() and wait() carry out the collective calls that were started.
  virtual bool done() const = 0;
  virtual void wait() = 0;  ///< sleeps
  /// Once done: bytes moved, or why not.
  virtual const base::Result<std::uint64_t>& result() const = 0;
};

/// Opens the files below; tests and models give others than storage::open.
using Opener = std::function<base::Result<std::unique_ptr<storage::File>>(const storage::OpenRequest& request)>;

/// Writes what hint pario_write_behind has had kept back, of all files of this process. Before it tells other processes anything, so that
/// they find in the files what they have been told of. Errors are those of the next calls on the files. Costs nothing when nothing is kept.
void write_what_is_kept();

/// Collective over `communicator`, a handle of the process's MPI: its ranks, for
/// SharedFile::open(). The hints say how long it waits for those that have not come.
base::Result<std::shared_ptr<comm::Comm>> make_comm(std::uintptr_t communicator, const std::string& path, const hints::FileHints& hints);

/// Deletes a file, with the subfiles it may consist of.
base::Status remove(const std::string& path);

/// One open file of a communicator. Functions marked collective are called by all ranks in the same order; the others by any rank at any
/// time, also by several threads. Collective functions return the same error on all ranks.
///
/// Where hints allow it, writes are kept back after the call has returned: small independent ones (pario_write_behind) until the rank makes
/// a collective call that moves data, changes the file or syncs, or until its pario_write_behind_delay is over; collective ones
/// (pario_merge_collectives) until the next of such calls that is not a write. A rank always reads what it has written. When such a write
/// fails later, the next call that moves data, sync or close does what it should and returns that error. What is kept when the program ends
/// without close is written by exit(3).
class SharedFile {
 public:
  /// Collective. The lowest rank creates the file, the others open it after that; layout and facts of the file system are found once.
  static base::Result<std::unique_ptr<SharedFile>> open(std::shared_ptr<comm::Comm> comm, const OpenRequest& request);
  static base::Result<std::unique_ptr<SharedFile>> open_with(std::shared_ptr<comm::Comm> comm, const OpenRequest& request,
                                                             const Opener& opener);
  virtual ~SharedFile() = default;
  /// Collective. Waits for what is under way, writes the report of the hints and statistics where that is asked for, closes.
  virtual base::Status close() = 0;

  /// Moves the bytes of an access; With::together is collective. `call` names the MPI function in messages (static text).
  /// Reads: bytes moved before the end of the file.
  virtual base::Result<std::uint64_t> write(const pattern::Access& access, With with, const char* call) = 0;
  virtual base::Result<std::uint64_t> read(const pattern::Access& access, With with, const char* call) = 0;
  /// Collective counterpart of write and read, with With::together, of a rank that cannot make the
  /// call (bad arguments): all ranks get `error`. Its number is an errno, or negative: the caller's
  /// own, which means nothing here.
  virtual void refuse(plan::Direction direction, const base::Error& error, const char* call) = 0;
  /// The same for start(). Does not wait for the other ranks.
  virtual void start_refusal(plan::Direction direction, const base::Error& error, const char* call) = 0;
  /// This rank cannot take part in a collective call and may not tell so now: it does not know
  /// whether the call was meant for this file. Ranks that wait for it there get the error when it
  /// makes its next collective call. No direction: a call that moves no data.
  virtual void miss(std::optional<plan::Direction> direction, const base::Error& error, const char* call) = 0;
  /// The same without waiting; carried out by a thread of pario's own, collective ones in their order. Buffers stay until done().
  virtual std::shared_ptr<Operation> start(plan::Direction direction, const pattern::Access& access, With with, const char* call) = 0;

  virtual base::Result<std::uint64_t> size() = 0;
  virtual base::Status resize(std::uint64_t size) = 0;       ///< collective
  virtual base::Status preallocate(std::uint64_t size) = 0;  ///< collective
  virtual base::Status sync() = 0;                           ///< collective
  virtual void set_atomic(bool atomic) = 0;                  ///< collective
  virtual bool atomic() const = 0;

  /// The shared file pointer, in data bytes of the current view (the same on all ranks).
  virtual base::Result<std::uint64_t> advance_shared(std::uint64_t bytes) = 0;  ///< the value before
  virtual base::Result<std::uint64_t> shared_position() = 0;
  virtual base::Status seek_shared(std::uint64_t position) = 0;  ///< collective
  /// Collective: this rank's place when all ranks move `bytes` each in rank order; the pointer goes past them all.
  virtual base::Result<std::uint64_t> order_shared(std::uint64_t bytes, const char* call) = 0;

  /// Collective: the error of the lowest rank that brings one; else an error that names the ranks
  /// whose `hash` of the arguments differs from that of rank 0.
  virtual base::Status agree(std::uint64_t hash, const base::Status& mine, const char* call) = 0;

  virtual const comm::Comm& comm() const = 0;
  virtual const std::string& path() const = 0;
  virtual const hints::FileHints& hints() const = 0;  ///< effective
  /// Collective. Hints that are read at open only stay as they are.
  virtual base::Status set_hints(const hints::FileHints& hints) = 0;
  /// Whether bytes that one rank has written can be read by every other that it has told so by MPI,
  /// without MPI_File_sync.
  virtual bool visible_at_once() const = 0;
  virtual std::vector<HintOutcome> audit() const = 0;
  virtual Statistics statistics() const = 0;
};

}  // namespace pario::engine
