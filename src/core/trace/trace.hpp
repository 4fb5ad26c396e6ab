// Module trace: counters and events of this process.
//
// Cost: a counted call takes two reads of the tick counter, one uncontended lock of the file's row
// and about a dozen additions; an event is one more store of 48 bytes.
//
// Unless stated otherwise every function is thread-safe, allocates nothing from the heap, uses no
// stdio, and may be called before constructors have run, after destructors have run, and in a
// signal handler (a call that arrives while the same thread is inside the tracer is not counted;
// `process.lost` counts such calls). docs/log-format.md describes the log.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/base/base.hpp"
#include "core/trace/calls_in_progress.hpp"
#include "core/trace/rows.hpp"

namespace pario::trace {

struct FunctionInfo {
  const char* name;      ///< the symbol, e.g. "pwrite64"; null: no function has this id
  const char* category;  ///< posix, stdio, mpiio, hdf5, netcdf, pnetcdf, adios2, p2p, wait,
                         ///< collective, rma, mpi (management), peers (waiting for others)
  Op op = Op::other;     ///< its effect on a file, for events (no meaning for MPI communication)
};

struct Config {
  const char* directory = nullptr;  ///< directory of the process log; null or empty: no tracing
  std::uint64_t events_limit =
      256ull << 20;  ///< bytes of compressed event chunks per process; 0: no events
  std::uint64_t files_limit = 100000;  ///< distinct paths per process with rows of their own
  bool messages =
      true;            ///< print errors of the tracer on stderr, too; the log has them in any case
  bool sites = false;  ///< count calls by the place in the program that makes them, too
  /// Called inside the tracer about ten times a second while calls are counted; null: nothing.
  void (*at_anchor)() = nullptr;
  /// Called inside the tracer by finish(), as the first part of its own work; null: nothing.
  void (*at_end)() = nullptr;
  bool arguments = true;  ///< keep the program's arguments in the log; false: only its name
};

/// Starts tracing into a new process log. Once per process image (again only in tests, while no
/// thread counts); `functions` must stay valid. On failure (directory not writable, disk full)
/// reports once on stderr and leaves tracing off; the program is never harmed.
void start(const Config& config, std::span<const FunctionInfo> functions);
/// Starts a new log with the same settings in the child of a fork; the parent's log stays as it is.
/// Every earlier Record* belongs to the parent: replace those that are kept by renew() before
/// anything is counted, and then do the work of Config::at_anchor, which may need them.
void restart_after_fork();
/// Writes the last events and the end of the process. `end_code`: the argument of exit, or a
/// signal; the log keeps the status that the parent sees (0 to 255). May be called more than once;
/// calls after it are still counted. Async-signal-safe: in a handler that has interrupted the
/// tracer it writes the end alone, and the log keeps its counters and events as those of a killed
/// process.
void finish(std::uint64_t end_kind, int end_code);
bool on();
/// Returns the descriptor of the log, or -1. close_range, closefrom, dup2 and close must spare it.
/// If it is closed nevertheless, the tracer opens the log again and never writes to the file that
/// now has its number.
int descriptor();

/// Returns ticks of the processor's invariant time stamp counter, else nanoseconds. About 10 ns.
inline std::uint64_t ticks() { return base::ticks(); }

/// The raw striping attribute of a file. find_record owns its memory: it writes the layout note and
/// releases it.
struct RawLayout {
  const char* kind = nullptr;  ///< name of the attribute without its name space's "user.":
                               ///< lustre.lov, ceph.file.layout; null: none
  std::byte* data = nullptr;
  std::size_t size = 0;
};

/// The facts from which a Record is created, when a path is first seen in a layer; they cost a few
/// system calls once.
struct FileFacts {
  std::uint64_t kind = 0, device = 0, inode = 0, block_size = 0, size = 0, filesystem = 0;
  RawLayout layout = {};
};

/// Returns the facts of an open descriptor, or of the file that `path` names (links are followed):
/// fstat, the note of a new file system, and the layout of a striped file. All zero if they are not
/// available. For find_record's `facts`.
FileFacts facts_of(int descriptor);
FileFacts facts_of(const char* path);

/// Returns the row of `path` (absolute) in `layer`; creates a new one with `facts` (called once,
/// outside locks; may be null). Never null while tracing is on: beyond the limit the row of the
/// directory, without memory a row for all files.
Record* find_record(Layer layer, std::string_view path, FileFacts (*facts)(void* context),
                    void* context);
/// True if the record was created by a path lookup before the file existed; its FileFacts are
/// empty.
inline bool is_bare(const Record& record) {
  return std::atomic_ref(const_cast<Record&>(record).kind).load(std::memory_order_acquire) == 0 &&
         record.folded == 0;
}
/// Sets the facts of a bare record and releases their layout.
void complete(Record& record, const FileFacts& facts);
/// Returns the existing row of `path` in `layer`; null if it has none of its own.
Record* known_record(Layer layer, std::string_view path);
inline std::uint32_t index_of(const Record* record) {
  return static_cast<std::uint32_t>(record->row);
}
/// Returns the path of a record, also of one of the parent after a fork.
inline std::string_view path_of(const Record* record) {
  const auto* text = reinterpret_cast<const char*>(record->path_text);
  std::uint32_t length;
  std::memcpy(&length, text, sizeof length);
  return {text + sizeof length, length};
}
/// Returns the row of this process for the path and layer of a row of the parent, with the same
/// facts. After restart_after_fork().
Record* renew(const Record* parents);

/// A finished call on a file.
struct Call {
  FunctionId function;
  Op op;
  std::uint64_t start, end;               ///< ticks
  std::uint64_t offset = kUnknownOffset;  ///< first byte in the file; truncating: the new size
  /// Bytes asked for (mmap: mapped; munmap: 0; seek: the position before, or kUnknownOffset).
  /// readdir, scandir: entries returned.
  std::uint64_t asked = 0;
  std::int64_t result = 0;  ///< bytes moved by reads and writes; negative: the call failed
  std::uint8_t flags =
      0;  ///< kCollective; kInView: `offset` counts the bytes that an MPI file view shows; kAsync:
          ///< an asynchronous request, without time of the program; or 0
  std::uint32_t open_flags =
      0;  ///< open(2) flags of the descriptor (MPI-IO: amode, and only at open)
  const void* data = nullptr;  ///< the first byte read or written, for samples; may be null
  /// Number of equal calls in a row (one-character stdio calls) in one event: asked, result and the
  /// time from start to end are those of all, offset is that of the first.
  std::uint32_t calls = 1;
};

/// Counts a call in the rows of its file and function, and stores its event.
void count(Record* record, const Call& call);
/// Counts a call without a file (MPI communication) in the row of its function, and stores an event
/// with `where` as its offset and `file` as given.
void count_call(const Call& call, std::uint32_t file, std::uint64_t bytes);
/// Counts a call that waits for another process in the rows of its function and call site, without
/// an event.
void count_wait(const Call& call);
/// Count the submission of an asynchronous request on a file, and its completion `latency` ticks
/// later. count() counts the transfer itself.
void begin_request(Record* record);
void end_request(Record* record, std::uint64_t latency);
/// Takes a submission back that the kernel has not accepted.
void withdraw_request(Record* record);
/// Adds the calls inside a call of a library, which count() has counted, to its row.
void add_inner(Record* record, Op op, const InnerCalls& inner);
/// Adds to a counter that no call changes (buffer_size, formatted_calls, ...), under the lock of
/// the row.
void set(Record* record, std::uint64_t Record::* counter, std::uint64_t value);
void add(Record* record, std::uint64_t Record::* counter, std::uint64_t value);

/// The call that another process is in, as its log shows it.
struct OtherCall {
  enum class State : std::uint8_t { unknown, ended, outside, inside };
  State state = State::unknown;  ///< outside: of all traced calls; the members below: inside
  const FunctionInfo *outer = nullptr, *inner = nullptr;  ///< the same if no call is nested
  double seconds = 0;                                     ///< since its begin
  std::uint64_t offset = kUnknownOffset;                  ///< of the outer call, as in its Event
  char path[1024] = {};  ///< terminated by zero, perhaps cut; empty: not known
};
/// Reads the call of a process of this host that runs or hangs, and logs to the same directory. The
/// process is found by its PID (in this process's name space) or, if `pid` is 0, by its rank in
/// MPI_COMM_WORLD. Of several threads the one whose call has lasted longest counts. Reads the whole
/// log, but no events. Not for signal handlers.
OtherCall call_of_process(std::uint64_t pid, int world_rank);

Process& process();
/// Adds to a fact of the process that several threads change.
void add(std::uint64_t Process::* fact, std::uint64_t value);

/// Counts a read or write of the program on a descriptor without a row (a pipe, a socket), which
/// the kernel counts, too. `moved`: negative if it failed.
void count_untraced(Op op, std::int64_t moved);
/// Counts the bytes of a read or write of the program on a socket. `moved`: negative if it failed.
void count_message(Op op, std::int64_t moved);
/// Reads the start of a file for the tracer itself, and counts the calls as its own; returns the
/// bytes read or -errno.
long read_own_file(const char* path, void* data, std::size_t size);

/// Appends a JSON object (without newline) to the notes. Longer objects than 256 KiB are dropped
/// and counted as lost.
void note(std::string_view json);
/// Reports a message: on stderr once (prefix "pario: "), and as note "message".
void message(std::string_view text);

}  // namespace pario::trace
