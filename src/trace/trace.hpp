// Room trace: counters and events of this process, on the side. Called by all rooms, calls none but base.
//
// What a call costs here is what every traced program pays: a call that is counted takes two reads of the tick counter, one
// uncontended lock of the file's row and about a dozen additions; with events one 48-byte store more.
//
// Unless said otherwise every function is thread-safe, allocates nothing from the heap, uses no stdio, and may be called before
// constructors have run, after destructors have run, and in a signal handler (a call that arrives while the same thread is
// inside the tracer is passed through uncounted; `process.lost` counts it). The log is described in docs/log-format.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/base.hpp"

namespace pario::trace {

enum class Layer : std::uint8_t { posix, stdio, mpiio };

/// What a call does to a file; decides which counters move. The log's `ops`.
enum class Op : std::uint8_t { open, close, read, write, seek, stat, sync, flush, map, truncate, other };

/// One row of counters; the members are those of counters.def, in that order, all u64.
struct Record {
#define PARIO_COUNTER(name, unit, meaning) std::uint64_t name;
#include "trace/counters.def"
#undef PARIO_COUNTER
};

/// Facts of this process; the members are those of process.def.
struct Process {
#define PARIO_PROCESS(name, unit, meaning) std::uint64_t name;
#include "trace/process.def"
#undef PARIO_PROCESS
};

/// One event as it lies in the log (docs/log-format.md, Events).
struct Event {
  std::uint64_t start, duration, offset, length;
  std::uint32_t file, count, span;
  std::uint16_t function;
  std::uint8_t thread, flags;
};
static_assert(sizeof(Event) == 48);

enum EventFlags : std::uint8_t { kFailed = 1, kInMpiIo = 2, kInMpi = 4, kCollective = 8, kShort = 16, kInView = 32 };

/// Index of an intercepted function in the table given to start().
using FunctionId = std::uint16_t;
inline constexpr std::size_t kMaxFunctions = 1024;
inline constexpr std::uint64_t kUnknownOffset = ~std::uint64_t{0};

struct FunctionInfo {
  const char* name;      ///< the symbol, e.g. "pwrite64"; null: no function has this id
  const char* category;  ///< posix, stdio, mpiio, p2p, wait, collective, rma, mpi (management)
  Op op = Op::other;     ///< what it does to a file: how readers classify its events (no meaning for MPI communication)
};

struct Config {
  const char* directory = nullptr;            ///< where the process log goes; null or empty: tracing is off
  std::uint64_t events_limit = 256ull << 20;  ///< bytes of compressed event chunks per process; 0: no events
  std::uint64_t files_limit = 100000;         ///< distinct paths per process with rows of their own
  bool messages = true;                       ///< print errors of the tracer on stderr; they are notes of the log in any case
  bool arguments = true;                      ///< keep the program's arguments in the log; false: its name alone
};

/// Starts tracing into a new process log. Once per process image (again only in tests, while no thread counts); `functions` must stay valid
/// (static). On failure (directory not writable, disk full) says so once on stderr and leaves tracing off: the program is never harmed.
void start(const Config& config, std::span<const FunctionInfo> functions);
/// In the child of a fork: leaves the parent's log alone and opens a new one with the same settings. Every Record* from before belongs
/// to the parent: exchange those that are kept by renew() before anything is counted.
void restart_after_fork();
/// Writes the last events and the end of the process. `end_code`: the argument of exit, or a signal;
/// the log keeps the status that the parent sees (0 to 255). May be called more than once; calls
/// after it are still counted.
void finish(std::uint64_t end_kind, int end_code);
bool on();
/// The log's descriptor, or -1: close_range, closefrom, dup2 and close must spare it. (Should it be lost all the same, the tracer opens
/// the log again and never writes to what has taken its number.)
int descriptor();

/// Ticks of the processor's invariant time stamp counter, else nanoseconds. ~10 ns.
inline std::uint64_t ticks() { return base::ticks(); }

namespace detail {
struct Slot;
/// Where this thread is; plain bytes, so that it needs no construction.
struct Context {
  // Depths; each a word: what is stored as a byte cannot be read back as part of a word without waiting.
  std::uint32_t call, mpi, mpiio, tracer;
  Slot* slot;  // the thread's block in the log, once it has one
};
extern constinit thread_local Context context __attribute__((tls_model("initial-exec")));
void lose_call();
}  // namespace detail

/// Marks this thread as inside the tracer (kind `call`), or inside an MPI call. `outermost()` is false when the thread was inside already:
/// then the call must be passed through uncounted; of kind `call` that is counted in process.lost. Around the real function stands no guard
/// of kind `call`: a signal handler may interrupt it and make calls of its own. Kind `mpi` nests around `call`: POSIX calls made by an MPI
/// library are counted, with the flags kInMpi / kInMpiIo.
class Guard {
 public:
  enum class Kind : std::uint8_t { call, mpi, mpiio };
  explicit Guard(Kind kind = Kind::call) : kind_(kind) {
    auto& context = detail::context;
    outermost_ = context.call == 0 && context.tracer == 0 && (kind == Kind::call || (context.mpi == 0 && context.mpiio == 0));
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

/// The raw striping attribute of a file. Its memory belongs to find_record, which writes the layout note and gives it back.
struct Layout {
  const char* kind = nullptr;  ///< name of the attribute without its name space's "user.": lustre.lov, ceph.file.layout; null: none
  std::byte* data = nullptr;
  std::size_t size = 0;
};

/// What a Record is created from, the first time a path is seen in a layer; costs a few system calls then, nothing later.
struct FileFacts {
  std::uint64_t kind = 0, device = 0, inode = 0, block_size = 0, size = 0, filesystem = 0;
  Layout layout = {};
};

/// The facts of an open descriptor, or of what `path` names (links are followed): fstat, the note of its file system when that is
/// new, and where the file is striped its layout. All zero when it is not to be had. Meant for find_record's `facts`.
FileFacts facts_of(int descriptor);
FileFacts facts_of(const char* path);

/// The row of `path` (absolute) in `layer`, made when new by asking `facts` (called once, outside locks; may be null). Never null while
/// tracing is on: past the limit the row of the directory, without memory a row for everything.
Record* find_record(Layer layer, std::string_view path, FileFacts (*facts)(void* context), void* context);
/// Whether nothing was to be had of a record's file when the row was made: its name was asked for before there was a file.
bool is_bare(const Record& record);
/// Gives a bare record the facts of its file, whose layout comes to an end here.
void complete(Record& record, const FileFacts& facts);
/// The row of `path` in `layer` where there is one of its own already; null otherwise.
Record* known_record(Layer layer, std::string_view path);
std::uint32_t index_of(const Record* record);
/// The path of a record, as the log has it. Also for a record of the parent, after a fork.
std::string_view path_of(const Record* record);
/// After restart_after_fork: this process's row of the same path and layer as a row of the parent, with the same facts.
Record* renew(const Record* parents);

/// One finished call on a file.
struct Call {
  FunctionId function;
  Op op;
  std::uint64_t start, end;               ///< ticks
  std::uint64_t offset = kUnknownOffset;  ///< where it began in the file; truncating: the new size
  std::uint64_t asked = 0;       ///< bytes asked for (mmap: mapped; munmap: 0; seek: position before, kUnknownOffset where not known)
  std::int64_t result = 0;       ///< bytes moved by reads and writes; negative: the call failed
  std::uint8_t flags = 0;        ///< kCollective; kInView: `offset` counts the bytes that an MPI file view shows; or 0
  std::uint32_t open_flags = 0;  ///< open(2) flags of the descriptor (MPI-IO: amode, and only at open)
  const void* data = nullptr;    ///< writes: the first byte written, now and then looked at (is it text?); may be null
  std::uint32_t calls = 1;       ///< more than 1: so many equal calls in a row (one-character stdio calls), counted as such, in one event;
                                 ///< asked, result and the time from start to end are of all of them, offset of the first
};

/// No file, for count_call().
inline constexpr std::uint32_t kNoFile = ~std::uint32_t{0};

/// Counts the call in the record's row and the function's row, and stores its event.
void count(Record* record, const Call& call);
/// Counts a call that concerns no file (MPI communication): the function's row and an event with `where` in its offset and `file` as given.
void count_call(const Call& call, std::uint32_t file, std::uint64_t bytes);
/// Adds to a counter that is none of the calls' own (buffer_size, formatted_calls, ...), under the row's lock.
void set(Record* record, std::uint64_t Record::* counter, std::uint64_t value);
void add(Record* record, std::uint64_t Record::* counter, std::uint64_t value);

Process& process();

/// Appends one JSON object (without newline) to the notes; at most 256 KiB, longer ones are dropped and counted as lost.
void note(std::string_view json);
/// A message for people: stderr once (prefix "pario: "), and a note "message".
void message(std::string_view text);

}  // namespace pario::trace
