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

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/base/base.hpp"

namespace pario::trace {

/// The interface of a call (calls.def). The log's `layers`.
enum class Layer : std::uint8_t {
#define PARIO_LAYER(name) name,
#include "core/trace/calls.def"
};

inline constexpr std::size_t kLayerCount = 0
#define PARIO_LAYER(name) +1
#include "core/trace/calls.def"
    ;

/// The effect of a call on a file, which selects its counters (calls.def). The log's `ops`.
enum class Op : std::uint8_t {
#define PARIO_OP(name, calls, time, nested) name,
#include "core/trace/calls.def"
};

/// The counters of one file and layer; the members are those of counters.def, in that order.
struct Record {
#define PARIO_COUNTER(name, unit, use, meaning) std::uint64_t name;
#include "core/trace/counters.def"
#undef PARIO_COUNTER
};

/// The facts of this process; the members are those of process.def.
struct Process {
#define PARIO_PROCESS(name, unit, use, meaning) std::uint64_t name;
#include "core/trace/process.def"
#undef PARIO_PROCESS
};

/// The role of a field in the tables of readers (counters.def, process.def).
enum class Use : std::uint8_t { value, optional, size, key, unread };
enum class Unit : std::uint8_t { count, bytes, ticks, time, ns, id };
/// A row of counters.def or process.def.
struct FieldInfo {
  const char* name;
  Unit unit;
  Use use;
  const char* meaning;
};
/// A row PARIO_OP of calls.def: the names of the operation and of its counters.
struct OpInfo {
  const char *name, *calls, *time;
};
std::span<const FieldInfo> counter_table();
std::span<const FieldInfo> process_table();
std::span<const OpInfo> op_table();
std::span<const char* const> layer_names();
const char* name_of(Unit unit);
const char* name_of(Use use);
/// The largest sizes of the size classes but the last, which is open.
std::span<const std::uint64_t> size_bins();

/// An event as stored in the log (docs/log-format.md, Events).
struct Event {
  std::uint64_t start, duration, offset, length;
  std::uint32_t file, count, span;
  std::uint16_t function;
  std::uint8_t thread, flags;
};
static_assert(sizeof(Event) == 48);

enum EventFlags : std::uint8_t {
  kFailed = 1,
  kInMpiIo = 2,
  kInMpi = 4,
  kCollective = 8,
  kShort = 16,
  kInView = 32,
  kAsync = 64,
  kNamed = 128  ///< calls in progress only: the row has a path
};

/// Index of an intercepted function in the table given to start().
using FunctionId = std::uint16_t;
inline constexpr std::size_t kMaxFunctions = 1024;
inline constexpr std::uint64_t kUnknownOffset = ~std::uint64_t{0};

/// No file.
inline constexpr std::uint32_t kNoFile = ~std::uint32_t{0};

/// A call in progress as stored in the log (docs/log-format.md, Thread block). All members but
/// `path` have the values of the call's later Event.
struct CallRow {
  std::uint64_t start;  ///< ticks; 0: no call
  std::uint64_t offset, length;
  std::uint32_t file;
  FunctionId function;
  std::uint8_t flags, unused;
  char path[224];  ///< as the program gave it, terminated by zero, perhaps cut; only with kNamed
};
static_assert(sizeof(CallRow) == 256);
/// Nested calls that a thread shows; of deeper ones the innermost.
inline constexpr std::uint32_t kNestedCalls = 3;

struct FunctionInfo {
  const char* name;      ///< the symbol, e.g. "pwrite64"; null: no function has this id
  const char* category;  ///< posix, stdio, mpiio, hdf5, netcdf, pnetcdf, adios2, p2p, wait,
                         ///< collective, rma, mpi (management)
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
/// anything is counted.
void restart_after_fork();
/// Writes the last events and the end of the process. `end_code`: the argument of exit, or a
/// signal; the log keeps the status that the parent sees (0 to 255). May be called more than once;
/// calls after it are still counted.
void finish(std::uint64_t end_kind, int end_code);
bool on();
/// Returns the descriptor of the log, or -1. close_range, closefrom, dup2 and close must spare it.
/// If it is closed nevertheless, the tracer opens the log again and never writes to the file that
/// now has its number.
int descriptor();

/// Returns ticks of the processor's invariant time stamp counter, else nanoseconds. About 10 ns.
inline std::uint64_t ticks() { return base::ticks(); }

/// The calls on files, and of MPI, inside a call of a library.
struct InnerCalls {
  std::uint64_t ticks, reads, bytes_read, writes, bytes_written;
};

class LibraryCall;

namespace detail {
struct Slot;
/// The position of this thread; plain bytes, so that it needs no construction.
struct Context {
  // Depths; words, because reading stored bytes as part of a word stalls.
  std::uint32_t call, mpi, mpiio, tracer;
  Slot* slot;                           // the thread's block in the log; null before the first call
  CallRow* calls;                       // its calls in progress, in that block
  std::uint32_t nested;                 // number of calls in progress, at most kNestedCalls
  std::uintptr_t frames[kNestedCalls];  // stack addresses of these calls
  const LibraryCall* library;           // of a library above files; null: outside of such calls
  InnerCalls inner;                     // inside the outermost of them
};
extern constinit thread_local Context context __attribute__((tls_model("initial-exec")));
void lose_call();
extern constinit std::atomic<int> first_calls;  ///< of this image that are still to come
std::uint64_t thread_time();                    ///< processor time of this thread in ns
void leave_out_first_call(std::uint64_t begin);
/// Gives the thread its block. False if it cannot have one.
bool prepare_thread();
/// Removes the calls that were left without a return (longjmp), seen from a call at `frame`.
/// Returns the number of the others.
std::uint32_t drop_abandoned_calls(std::uintptr_t frame);
}  // namespace detail

/// The facts of a call that are known before it is made; see CallRow.
struct CallStart {
  FunctionId function = 0;
  std::uint32_t file = kNoFile;
  std::uint64_t offset = kUnknownOffset, length = 0;
  std::uint8_t flags = 0;
  std::string_view path = {};
};

/// Shows a call in the log from its construction to end(), so that a reader sees where a process is
/// that hangs, runs or was killed. A local variable of the function that makes the call. Costs a
/// few stores. A call in a signal handler on another stack may hide the interrupted one until it
/// returns.
///
/// It has no destructor, because the forced unwinding of a cancelled thread must not find clean-ups
/// in this library: they would use the library's own libgcc, which aborts then. A call that is left
/// without end() is dropped later, as after longjmp.
class ShownCall {
 public:
  /// `start`: ticks.
  ShownCall(const CallStart& call, std::uint64_t start) {
    auto& context = detail::context;
    if (context.calls == nullptr && !detail::prepare_thread()) [[unlikely]]
      return;
    rows_ = context.calls;
    index_ = enter(context);
    // A signal handler may begin a call from here on: its row is the next one.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    fill(rows_[index_], call, start);
  }
  /// Removes the call from the log, after its return.
  void end() const {
    auto& context = detail::context;
    if (rows_ == nullptr || rows_ != context.calls) [[unlikely]]
      return;  // the child of a fork, or the end of the thread
    std::atomic_ref(rows_[index_].start).store(0, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    context.nested = index_;
  }
  ShownCall(const ShownCall&) = delete;
  ShownCall& operator=(const ShownCall&) = delete;

 private:
  std::uint32_t enter(detail::Context& context) const {
    const auto frame = reinterpret_cast<std::uintptr_t>(this);
    std::uint32_t nested = context.nested;
    if (nested != 0 && context.frames[nested - 1] <= frame) [[unlikely]]
      nested = detail::drop_abandoned_calls(frame);
    if (nested == kNestedCalls) --nested;
    context.nested = nested + 1;
    context.frames[nested] = frame;
    return nested;
  }
  static void fill(CallRow& row, const CallStart& call, std::uint64_t start) {
    row.offset = call.offset;
    row.length = call.length;
    row.file = call.file;
    row.function = call.function;
    row.flags = call.flags;
    if (!call.path.empty()) store_path(row, call.path);
    std::atomic_ref(row.start).store(start, std::memory_order_release);
  }
  /// Copies a short text. The compiler makes memcpy "rep movs" here, which is slower.
  static void copy_words(char* to, const char* from, std::size_t size) {
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    if (size < kWord) {
      for (std::size_t at = 0; at < size; ++at) to[at] = from[at];
      return;
    }
    for (std::size_t at = 0; at < size - kWord; at += kWord) std::memcpy(to + at, from + at, kWord);
    std::memcpy(to + size - kWord, from + size - kWord, kWord);
  }
  static void store_path(CallRow& row, std::string_view path) {
    const std::size_t size = std::min(path.size(), sizeof row.path - 1);
    copy_words(row.path, path.data(), size);
    row.path[size] = '\0';
    row.flags |= kNamed;
  }

  CallRow* rows_ = nullptr;
  std::uint32_t index_ = 0;
};

/// A ShownCall that ends with its scope, for calls that are no cancellation points.
class InProgress : public ShownCall {
 public:
  using ShownCall::ShownCall;
  ~InProgress() { end(); }
};

/// Marks this thread as inside the tracer (kind `call`), or inside an MPI call. `outermost()` is
/// false if the thread was inside already: the call must then be passed through uncounted; with
/// kind `call` process.lost counts it. No guard of kind `call` surrounds the real function: a
/// signal handler may interrupt it and make calls of its own. Kind `mpi` nests around `call`: POSIX
/// calls of an MPI library are counted, with the flags kInMpi and kInMpiIo.
class Guard {
 public:
  enum class Kind : std::uint8_t { call, mpi, mpiio };
  explicit Guard(Kind kind = Kind::call) : kind_(kind) {
    auto& context = detail::context;
    outermost_ = context.call == 0 && context.tracer == 0 &&
                 (kind == Kind::call || (context.mpi == 0 && context.mpiio == 0));
    ++depth(context);
    if (!outermost_ && (kind == Kind::call || context.tracer != 0)) [[unlikely]]
      detail::lose_call();
  }
  ~Guard() { --depth(detail::context); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  bool outermost() const { return outermost_; }

 private:
  std::uint32_t& depth(detail::Context& context) const {
    return kind_ == Kind::call ? context.call : kind_ == Kind::mpi ? context.mpi : context.mpiio;
  }

  Kind kind_;
  bool outermost_;
};

/// Leaves the tracer's work on the first calls of an image out of the processor time of the
/// program: each new page of its tables costs a fault, which together is more than the work of a
/// short program. A local variable of that work; later ones cost a load and two branches.
class FirstCall {
 public:
  FirstCall() {
    if (detail::first_calls.load(std::memory_order_relaxed) > 0) [[unlikely]]
      begin_ = detail::thread_time();
  }
  ~FirstCall() {
    if (begin_ != 0) [[unlikely]]
      detail::leave_out_first_call(begin_);
  }
  FirstCall(const FirstCall&) = delete;
  FirstCall& operator=(const FirstCall&) = delete;

 private:
  std::uint64_t begin_ = 0;
};

/// Marks this thread as inside a call of a library above files (HDF5), and sums the calls on files
/// and of MPI that it makes, until end(). A call of the library inside another one is passed on
/// uncounted. A local variable of the function that makes the call.
///
/// It has no destructor, as ShownCall: an exception of the library (ADIOS2) must not find clean-ups
/// in this one. A call that was left without end() is known by the stack: it has no older frame, or
/// its frame is overwritten.
class LibraryCall {
 public:
  LibraryCall() : outermost_(!is_inside()) {
    if (!outermost_) return;
    auto& context = detail::context;
    context.library = this;
    context.inner = {};
    mark_ = mark_of(this);
  }
  void end() {
    if (!outermost_) return;
    mark_ = 0;
    detail::context.library = nullptr;
  }
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;
  bool outermost() const { return outermost_; }
  /// Returns the calls so far.
  const InnerCalls& inner() const { return detail::context.inner; }

 private:
  static constexpr std::uintptr_t kLargestStack = 1 << 20;  // of the frames inside a call
  static std::uintptr_t mark_of(const LibraryCall* call) {
    return reinterpret_cast<std::uintptr_t>(call) ^ 0x9e3779b97f4a7c15;
  }
  /// True if a call of this thread surrounds this one.
  bool is_inside() const {
    const LibraryCall* outer = detail::context.library;
    const auto frame = reinterpret_cast<std::uintptr_t>(this);
    return reinterpret_cast<std::uintptr_t>(outer) > frame &&
           reinterpret_cast<std::uintptr_t>(outer) - frame < kLargestStack &&
           outer->mark_ == mark_of(outer);
  }

  std::uintptr_t mark_ = 0;
  bool outermost_;
};

/// The raw striping attribute of a file. find_record owns its memory: it writes the layout note and
/// releases it.
struct Layout {
  const char* kind = nullptr;  ///< name of the attribute without its name space's "user.":
                               ///< lustre.lov, ceph.file.layout; null: none
  std::byte* data = nullptr;
  std::size_t size = 0;
};

/// The facts from which a Record is created, when a path is first seen in a layer; they cost a few
/// system calls once.
struct FileFacts {
  std::uint64_t kind = 0, device = 0, inode = 0, block_size = 0, size = 0, filesystem = 0;
  Layout layout = {};
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
  const void* data = nullptr;  ///< writes: the first byte written, for samples; may be null
  /// Number of equal calls in a row (one-character stdio calls) in one event: asked, result and the
  /// time from start to end are those of all, offset is that of the first.
  std::uint32_t calls = 1;
};

/// Counts a call in the rows of its file and function, and stores its event.
void count(Record* record, const Call& call);
/// Counts a call without a file (MPI communication) in the row of its function, and stores an event
/// with `where` as its offset and `file` as given.
void count_call(const Call& call, std::uint32_t file, std::uint64_t bytes);
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
