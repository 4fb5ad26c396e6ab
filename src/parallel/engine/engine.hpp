// Module engine: one file of many ranks. The only module that connects the stages of an access:
// pattern (summary) -> plan -> exchange -> file.
//
// Contracts of all functions:
// - Collective functions are called by all ranks of the file's Comm, in the same order. They return
//   the same error on all ranks; but if ranks run ahead (hint pario_run_ahead), blocking data
//   accesses return the error of a rank to that rank only, and the next collective call for which
//   the ranks wait returns it to the others. Other functions are independent: any
//   rank, any time.
// - Threads: independent functions may be called by several threads of a rank at the same time,
//   collective ones by one thread of a rank at a time. No function may be called in a signal
//   handler.
// - Units are bytes, offsets count from the beginning of the file, times are nanoseconds unless a
//   name says otherwise.
// - Errors are values (base::Status, base::Result) with operation, path, extent, errno and rank.
//   Only std::bad_alloc is thrown. After a rank has died, all collective calls end with an error.
// - Lifetime: buffers of blocking calls are free when the call returns; those of started calls when
//   Operation::is_done() is true.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "core/comm/comm.hpp"
#include "core/file/file.hpp"
#include "core/hints/hints.hpp"
#include "core/pattern/pattern.hpp"
#include "parallel/exchange/exchange.hpp"
#include "parallel/plan/plan.hpp"

namespace pario::engine {

/// The participants of a call: one rank alone (independent) or all ranks together (collective).
enum class With : std::uint8_t { alone, together };

struct OpenRequest {
  std::string path;
  int flags = 0;  ///< open(2): O_RDONLY ... O_CREAT, O_EXCL; the same on all ranks
  unsigned mode = 0666;
  bool delete_on_close = false;
  hints::FileHints hints;                      ///< those of rank 0 apply
  std::vector<hints::Setting> requested = {};  ///< settings of the program and the environment
  std::vector<hints::Rejected> rejected = {};  ///< rejected settings
  /// Called now and then while a call waits for other ranks; an Error ends the call on all ranks.
  std::function<base::Status()> interrupt = {};
  /// Bytes read ahead are dropped at this age; tests keep them on slow machines.
  std::uint64_t read_ahead_age_ns = 5'000'000;
};

/// One line of the hint audit: requested by the program, applied at open, effective now.
struct HintOutcome {
  std::string key = {}, requested = {}, applied = {}, effective = {};
  std::string reason = {};  ///< why the values differ; empty: they are equal
};

/// Statistics of one rank's calls on a file since it was opened; the members are the rows of
/// statistics.def. Rank 0 reports their sums over ranks at close.
struct Statistics {
#define PARIO_TIMER(member, name) std::uint64_t member = 0;
#define PARIO_COUNTER(name) std::uint64_t name = 0;
#define PARIO_DERIVED(name, value)
#include "parallel/engine/statistics.def"
#undef PARIO_TIMER
#undef PARIO_COUNTER
#undef PARIO_DERIVED
  exchange::Counters transfer = {};

  Statistics& operator+=(const Statistics& other);
  /// Counts a call of the program that has moved `bytes`.
  void count_call(plan::Direction direction, With with, std::uint64_t bytes);
  /// Counts a successful transfer; `unit`: bytes of a stripe or lock unit.
  void count_transfer(plan::Direction direction, base::Extent where, std::uint64_t moved,
                      std::uint64_t unit);
};

/// A non-blocking call in flight. Thread-safe.
class Operation {
 public:
  virtual ~Operation() = default;
  /// True if the call is finished. Does not block, with one exception: if no thread of pario may
  /// communicate (several nodes, and the program has not requested MPI_THREAD_MULTIPLE), is_done()
  /// and wait() execute the started collective calls.
  virtual bool is_done() const = 0;
  /// Sleeps until the call is finished.
  virtual void wait() = 0;
  /// Sleeps until the call is finished, at most for a duration; may return early.
  virtual void pause(std::uint64_t longest_ns) = 0;
  /// The bytes moved, or an error. Valid once is_done() is true.
  virtual const base::Result<std::uint64_t>& result() const = 0;
};

/// Opens the underlying file; tests and models pass functions other than file::open.
using Opener =
    std::function<base::Result<std::unique_ptr<file::File>>(const file::OpenRequest& request)>;
base::Result<std::unique_ptr<file::File>> open_file(const file::OpenRequest& request);

/// A box of an array that a file holds in C order, and the memory of its elements. `whole`,
/// `begin`, `shape` and `strides` have an item for each axis.
struct Box {
  std::uint64_t place = 0;                 ///< offset of the array in the file
  std::uint64_t element = 1;               ///< bytes of an element
  std::vector<std::uint64_t> whole = {};   ///< shape of the array
  std::vector<std::uint64_t> begin = {};   ///< first element of the box
  std::vector<std::uint64_t> shape = {};   ///< elements of the box on each axis; may be 0
  std::byte* memory = nullptr;             ///< first element of the box
  std::vector<std::int64_t> strides = {};  ///< bytes between elements in memory
};

/// The readers of bytes that were written independently: the ranks of the file, or anybody.
enum class Reader : std::uint8_t { ranks, all };

/// Writes the bytes that hint pario_write_behind keeps in memory, for all files of this process, as
/// far as `reader` could not read them otherwise. Called before the rank communicates, so that
/// other ranks find the bytes, and (Reader::all) before the program ends. The next calls on the
/// files return the errors. Costs one load if no bytes are kept and ranks read.
void write_kept_writes(Reader reader);

/// Drops the bytes that this process has read ahead, of all files: it may know of changes.
/// Called after communication. Costs one load until a file has such bytes. Thread-safe.
void note_event();

/// Makes the ranks of `communicator`, a handle of the process's MPI, for SharedFile::open().
/// Collective over `communicator`. The hints limit the wait for missing ranks.
base::Result<std::shared_ptr<comm::Comm>> make_comm(std::uintptr_t communicator,
                                                    const std::string& path,
                                                    const hints::FileHints& hints);

/// Deletes a file and its subfiles. Called by one rank, while no rank has the file open.
base::Status remove(const std::string& path);

class FileContext;
class Opening;
class PointerStore;
class Transfers;
struct OpenedFile;

/// The shared file pointer of an open file, in data bytes of the current view, which is the same on
/// all ranks. Lives as long as the file.
class SharedPointer {
 public:
  SharedPointer(FileContext& context, Transfers& transfers, std::unique_ptr<PointerStore> store);
  ~SharedPointer();

  /// Adds `bytes` and returns the position before. Independent.
  base::Result<std::uint64_t> advance(std::uint64_t bytes);
  base::Result<std::uint64_t> position();
  /// Collective: sets the pointer to the position that rank 0 gives, and returns that.
  base::Result<std::uint64_t> seek(std::uint64_t position);
  /// False if this rank has not moved the pointer since the file was opened or the pointer was set
  /// to 0. If it is false on all ranks, the pointer is 0.
  bool has_moved() const { return has_moved_.load(); }
  /// Collective: returns this rank's position when all ranks move `bytes` each in rank order; the
  /// pointer then points behind all of them. `call`: the MPI function, for messages (static text).
  base::Result<std::uint64_t> order(std::uint64_t bytes, const char* call);
  /// Removes the pointer's own files. Called by one rank when no rank uses the pointer any more.
  void remove();

 private:
  base::Result<std::uint64_t> advance_together(std::uint64_t bytes, const char* call);

  FileContext& context_;
  Transfers& transfers_;
  std::unique_ptr<PointerStore> store_;
  std::atomic<bool> has_moved_{false};
};

/// One open file of a communicator.
///
/// Hints may delay writes until after the call has returned: small independent ones
/// (pario_write_behind) until the rank makes a collective call that moves data, changes the file or
/// syncs, or until pario_write_behind_delay has passed; collective ones (pario_merge_collectives)
/// until the next such call that is not a write. A rank always reads its own writes. Ranks that
/// are all on one node keep independent writes together and read those of each other. If a kept
/// write fails, the next call of the rank that tried to write it (one that moves data, sync() or
/// close()) still does its work and returns that deferred error. If the program ends without
/// close(), exit(3) writes the kept bytes.
class SharedFile {
 public:
  /// Collective over `comm`. The lowest rank creates the file, the others open it after that;
  /// layout and facts of the file system are read once. The file keeps `comm` until it is
  /// destroyed.
  static base::Result<std::unique_ptr<SharedFile>> open(std::shared_ptr<comm::Comm> comm,
                                                        const OpenRequest& request,
                                                        const Opener& opener = open_file);
  /// Collective. Opens `path` for reading and writing; creates it if it does not exist.
  static base::Result<std::unique_ptr<SharedFile>> open(std::shared_ptr<comm::Comm> comm,
                                                        const std::string& path,
                                                        const hints::FileHints& hints);
  /// Without close(): writes this rank's kept bytes, ignores their errors, and reports nothing.
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  /// Collective. Finishes started calls and kept writes, reports hints and statistics where hints
  /// ask for it, and closes. A second call does nothing.
  base::Status close();

  /// Moves the bytes of an access; With::together is collective. `call`: the MPI function, for
  /// messages (static text). Returns the bytes moved; reads end at the end of the file.
  base::Result<std::uint64_t> write(const pattern::Access& access, With with, const char* call);
  base::Result<std::uint64_t> read(const pattern::Access& access, With with, const char* call);
  /// Does the same for one run of bytes of the file and of memory, in fewer steps.
  base::Result<std::uint64_t> move_run(plan::Direction direction, base::Extent where,
                                       std::byte* memory, With with, const char* call);
  /// Collective: writes or reads the boxes of each rank (any number, in any order, also none).
  /// Written boxes of one rank must not overlap in the file (EINVAL on all ranks).
  base::Result<std::uint64_t> write_boxes(std::span<const Box> boxes);
  base::Result<std::uint64_t> read_boxes(std::span<const Box> boxes);
  /// Starts write() or read() without waiting; a thread of pario carries it out, collective calls
  /// in their order.
  std::shared_ptr<Operation> start(plan::Direction direction, const pattern::Access& access,
                                   With with, const char* call);

  /// Takes part in the collective write() or read() of the other ranks for a rank that cannot make
  /// the call (bad arguments): all ranks return `error`. Its number is an errno, or negative: a
  /// value of the caller, unused here.
  void refuse(plan::Direction direction, const base::Error& error, const char* call);
  /// Refuses a call that the other ranks start() (see refuse()). Does not wait for the other ranks.
  void start_refusal(plan::Direction direction, const base::Error& error, const char* call);
  /// Records that this rank has missed a collective call, because it does not know the file of the
  /// call. Ranks that wait in that call get the error when this rank makes its next collective
  /// call. No direction: a call that moves no data.
  void miss(std::optional<plan::Direction> direction, const base::Error& error, const char* call);

  /// The size with this rank's kept writes. Independent.
  base::Result<std::uint64_t> size();
  base::Status resize(std::uint64_t size);       ///< collective
  base::Status preallocate(std::uint64_t size);  ///< collective
  /// Collective. Makes the writes of all ranks durable, and visible to all ranks.
  base::Status sync();
  base::Status set_atomic(bool atomic);  ///< collective; an error changes nothing
  bool atomic() const;

  SharedPointer& pointer();

  /// Collective: returns the error of the lowest rank that has one; otherwise an error that names
  /// the ranks whose `hash` of the arguments differs from that of rank 0.
  base::Status agree(std::uint64_t hash, const base::Status& mine, const char* call);

  const comm::Comm& comm() const;
  const std::string& path() const;
  /// The hints in force, until the next set_hints().
  const hints::FileHints& hints() const;
  /// Collective; the hints of rank 0 apply. Hints that are read only at open do not change.
  base::Status set_hints(const hints::FileHints& hints);
  /// Collective: begins another file view. Sets the shared pointer to 0, and the hints as
  /// set_hints() does if any rank has other ones. An error like that of agree().
  base::Status begin_view(const hints::FileHints& hints, const base::Status& mine,
                          const char* call);
  /// Changes with hints() and visible_at_once().
  std::uint64_t policy_number() const;
  /// True if every rank can read the bytes of another rank after communication, without
  /// MPI_File_sync.
  bool visible_at_once() const;
  std::vector<HintOutcome> audit() const;
  Statistics statistics() const;

 private:
  explicit SharedFile(std::unique_ptr<OpenedFile> state);
  friend class Opening;

  std::unique_ptr<OpenedFile> state_;
};

}  // namespace pario::engine
