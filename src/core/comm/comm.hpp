// Module comm: ranks behind one interface. Members: self (one rank), threads (tests, TSan), MPI
// (make_mpi, on the PMPI functions of module mpi), and callback (callback.hpp: messages that
// another library carries).
//
// Waits sleep: inside a node on futexes, between nodes by testing with growing pauses. Every wait
// has a Patience, which looks for dead ranks and reports missing ones.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"

namespace pario::comm {

/// Seconds after which a host that does not answer counts as dead.
inline constexpr std::uint64_t kSilence = 30;

/// The ranks that share memory: nodes, numbered in the order of their lowest ranks.
struct Topology {
  std::vector<int> node_of;                ///< by rank
  std::vector<std::vector<int>> ranks_of;  ///< by node, ascending; the first is the node's leader
  int nodes() const { return static_cast<int>(ranks_of.size()); }
};

/// The callbacks of a wait. `look` is called about every `interval_ns` with the nanoseconds waited
/// so far; an Error ends the wait (see Comm::check and Watchdog). `progress` (Comm::progress) is
/// called repeatedly during a long wait, because the other rank may itself wait for a message from
/// this process.
struct Patience {
  static constexpr std::uint64_t kUsualInterval = 200'000'000;
  std::uint64_t interval_ns = kUsualInterval;
  std::function<base::Status(std::uint64_t waited_ns)> look = {};
  std::function<void()> progress = {};
  /// The interval for a wait of at most `limit_ns`: a quarter of that, from 10 to 200 ms.
  static std::uint64_t interval_within(std::uint64_t limit_ns);
};

/// One wait with a Patience, for callers that sleep themselves: nap_ns() at most at a time, with
/// call_due() in between.
class PatienceTimer {
 public:
  /// Begins the wait. `patience` outlives it.
  explicit PatienceTimer(const Patience& patience);
  PatienceTimer(const PatienceTimer&) = delete;
  PatienceTimer& operator=(const PatienceTimer&) = delete;
  std::uint64_t waited_ns() const { return now_ - begin_; }  ///< until the last call_due()
  std::uint64_t nap_ns() const;                              ///< until call_due() is due
  /// Calls the functions of the Patience that are due. An Error ends the wait.
  base::Status call_due();

 private:
  const Patience& patience_;
  std::uint64_t begin_, now_, look_due_, progress_due_;
};

/// An Error as plain words, for shared memory and messages; long texts are truncated.
struct ErrorRecord {
  std::int32_t number = 0;
  std::int32_t rank = -1;
  std::uint64_t begin = 0, end = 0;
  std::array<char, 40> operation = {};
  std::array<char, 256> path = {};
  std::array<char, 192> detail = {};
};
ErrorRecord to_record(const base::Error& error);
base::Error from_record(const ErrorRecord& record);

/// "1, 2 and 5", "0-7 and 9": ascending numbers; the first 16 runs, then the number of the rest.
std::string format_numbers(std::span<const int> numbers);
/// "rank 1", "ranks 1, 2 and 5", "ranks 0-7 and 9"
std::string format_ranks(std::span<const int> ranks);

/// Sleeps until `done()` is true; `word` must change, and be woken, with each change of done().
base::Status wait_until(const base::FutexWord& word, const std::function<bool()>& done,
                        const Patience& patience);

/// Waits until `done()` is true, for something rare: the ranks that make it true wake none.
base::Status poll_until(const std::function<bool()>& done, const Patience& patience);

/// Sleeps for 1/16 of the time waited so far: a microsecond at least, a millisecond at most.
void sleep_for_share(std::uint64_t waited_ns);

/// Memory of all ranks of a node: initially zero, page-aligned, at other addresses in other
/// processes, so that it holds offsets, no pointers. Unmapped with the last copy; nothing remains
/// when processes are killed.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual std::byte* data() const = 0;
  virtual std::size_t size() const = 0;
};

/// Memory of this process alone; null on failure.
std::shared_ptr<SharedMemory> private_memory(std::size_t size);

/// A message in flight between ranks. The destructor withdraws it if it is not done (after a failed
/// wait).
class Pending {
 public:
  virtual ~Pending() = default;
  /// True once the message has arrived, or has left its buffer. Thread rules as for Comm.
  virtual bool test() = 0;
  /// Sleeps until the message may be done: about 1/16 of the time waited so far, `longest_ns` at
  /// most.
  virtual void pause(std::uint64_t waited_ns, std::uint64_t longest_ns);
  /// The errno of a failed message, once it is done; 0 otherwise. wait_all() returns it as an
  /// Error.
  virtual int error() const { return 0; }
};

/// The ranks that have arrived at this rank's collective call, and the missing ones.
struct Attendance {
  std::vector<int> present, missing;
  std::vector<int> silent = {};  ///< the missing ranks of nodes that have not answered
  std::string remarks = {};      ///< on other missing ranks: "rank 3: its last call ..."; or empty
  bool complete = true;   ///< false: some nodes have not answered yet; their ranks count as missing
  bool reported = false;  ///< a rank of another node reports them
};

/// A group of ranks. A Patience without `look` calls check(), one without `progress` calls the
/// progress() of the Comm. One thread of each rank calls at a time (MPI: any thread only if
/// thread_safe()); any thread may call check(), fail(), has_failed(), failure() and keep_alive().
/// No function may be called in a signal handler.
///
/// A Comm fails for all its ranks: once a collective call or a message has ended with an error on
/// one rank, or fail() was called, all collective calls of all ranks end with that error; on other
/// nodes, at their next check().
class Comm {
 public:
  virtual ~Comm() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const Topology& topology() const = 0;
  /// True if pario's threads may call while threads of the program are in MPI.
  virtual bool thread_safe() const = 0;
  /// Lets the MPI move the program's messages, while a thread of the program sleeps in this Comm.
  /// Does nothing on a thread that must not call MPI: one of pario (see mark_own_thread), unless
  /// thread_safe().
  virtual void progress() const {}
  /// False if the process of a rank of this node has ended; true if unknown.
  virtual bool alive(int rank) const = 0;
  /// The error of this Comm, if any. Looks for dead ranks of this node (ESRCH), receives errors and
  /// keep-alives of other nodes, and looks for dead hosts: the leader has ended, or the kernel has
  /// answered nothing for `silence_s` seconds (0: silence does not count).
  virtual base::Status check(std::uint64_t silence_s) = 0;
  virtual void fail(const base::Error& error) = 0;
  virtual bool has_failed() const = 0;
  /// The first error of the node. The first call sends it to the other nodes.
  virtual base::Status failure() = 0;
  /// Begins a collective call named `call` (static text), of which the functions below are parts.
  /// Counts the call, so that other ranks see which ranks have arrived. Costs a few stores into
  /// memory.
  virtual void announce(const char* call) = 0;
  /// Notes the name of a collective call in which this rank waits for no other one, for the remarks
  /// of ranks that miss it later. Not counted.
  virtual void note_call(const char* call) = 0;
  /// The ranks that have arrived at this rank's latest announced call. The first call asks the
  /// other nodes; call again until the answer is complete. Ranks of other nodes answer in check(),
  /// while they wait.
  virtual Attendance attendance() = 0;
  /// Restarts the time-outs of other ranks' Watchdogs, because this rank progresses in work that
  /// they wait for. Sends other nodes at most one message in `interval_ns` for all ranks of this
  /// node.
  virtual void keep_alive(std::uint64_t interval_ns) = 0;
  /// The time (base::monotonic_ns) of the latest keep-alive that reached this node; 0: none.
  virtual std::uint64_t last_keep_alive() const = 0;
  /// True on one rank of the node, until release_report(): it reports missing ranks.
  virtual bool claim_report() = 0;
  virtual void release_report() = 0;
  /// A rank's number in MPI_COMM_WORLD, for messages to users.
  virtual int world_rank(int rank) const = 0;

  /// Collective over the ranks of a node. Null on all of them if memory cannot be shared or the
  /// Comm has failed.
  virtual std::shared_ptr<SharedMemory> share(std::size_t size, const Patience& patience = {}) = 0;

  /// Collective over all ranks: `each` bytes of every rank, in rank order.
  virtual base::Status allgather(const void* mine, std::size_t each, void* all,
                                 const Patience& patience = {}) = 0;
  virtual base::Status broadcast(void* data, std::size_t size, int root,
                                 const Patience& patience = {}) = 0;
  virtual base::Status barrier(const Patience& patience = {}) = 0;
  /// Collective: a Comm of the same ranks with separate messages, for another thread or file.
  /// Null on all ranks of a node if share() is.
  virtual std::shared_ptr<Comm> duplicate(const Patience& patience = {}) = 0;

  /// Sends or receives one message. The buffer must live until test() is true. Messages between two
  /// ranks with the same tag keep their order. 0 <= tag < 2^15. Both sides give the same size,
  /// which may exceed 2^31.
  virtual std::unique_ptr<Pending> send(int to, int tag, std::span<const std::byte> data) = 0;
  virtual std::unique_ptr<Pending> receive(int from, int tag, std::span<std::byte> data) = 0;

  int node() const { return topology().node_of[static_cast<std::size_t>(rank())]; }
  const std::vector<int>& node_ranks() const {
    return topology().ranks_of[static_cast<std::size_t>(node())];
  }
  int local_rank() const;
  int local_size() const { return static_cast<int>(node_ranks().size()); }
  int leader() const { return node_ranks().front(); }
};

/// Marks the calling thread as one of pario, not of the program.
void mark_own_thread();
bool is_own_thread();

/// "60", "0.2"
std::string seconds_text(std::chrono::milliseconds time);

/// Limits of a wait for other ranks; zero: none.
struct WaitLimits {
  std::chrono::milliseconds report = {};   ///< until the missing ranks are named, once
  std::chrono::milliseconds give_up = {};  ///< until the wait fails (ETIMEDOUT), from its begin
                                           ///< or the latest keep-alive
  std::uint64_t silence_s = kSilence;      ///< of another host, until it counts as dead
  std::function<base::Status()> interrupt = {};  ///< called now and then; an Error ends the wait
};

/// Watches one rank's wait in one collective call: notices dead ranks, reports missing ranks, and
/// gives up after a time-out. Lives as long as its Patience; used by the waiting thread.
class Watchdog {
 public:
  struct Subject {
    const std::string& path;  ///< of the file, or the name of another subject
    const char* call;
    void (*say)(const std::string& text);  ///< prints a line for users
  };
  Watchdog(Comm& comm, const WaitLimits& limits, const Subject& subject)
      : comm_(comm), limits_(limits), subject_(subject), due_(limits.report) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  Patience patience();

 private:
  base::Status look(std::chrono::nanoseconds waited);
  void check_attendance(std::chrono::nanoseconds waited);
  void report(const Attendance& attendance) const;
  void postpone_report(std::chrono::nanoseconds waited);

  enum class Stage : std::uint8_t { waiting, asking, finished };
  Comm& comm_;
  const WaitLimits limits_;
  const Subject subject_;
  Stage stage_ = Stage::waiting;
  std::chrono::nanoseconds due_, asked_ = {};
};

/// Waits for all of them, with pauses that grow from microseconds to a millisecond.
base::Status wait_all(std::span<const std::unique_ptr<Pending>> messages,
                      const Patience& patience = {});

std::shared_ptr<Comm> make_self();

/// Runs `body(comm)` on as many threads as ranks; rank r is on node `node_of[r]`. Bodies must not
/// throw.
void run_as_threads(std::span<const int> node_of,
                    const std::function<void(std::shared_ptr<Comm>)>& body);

/// Returns the call that a process of this host is in, as text for users, such as "inside MPI_Recv
/// for 61 s"; empty if it is not known. `pid`: 0 if only the rank in MPI_COMM_WORLD is known.
/// Called by a waiting thread.
using CallLookup = std::string (*)(std::uint64_t pid, int world_rank);

/// Collective over `communicator` (a handle of the process's MPI, as a word): a new Comm, whose
/// messages are separate from the program's. Threads may make Comms of different communicators at
/// the same time; calls for one communicator have the same order on all ranks, as all collective
/// calls. Nodes: MPI_Comm_split_type, further divided by PARIO_NODES=k (k pretend nodes, for tests)
/// or MPICH's MPIR_CVAR_NUM_CLIQUES. Caches facts of the ranks and a duplicate of the communicator
/// for the next Comms of the same ranks in the same order, until MPI_Finalize at most; from the
/// second Comm on, this call notices dead ranks, too. `patience` limits the wait for missing ranks.
/// `lookup` serves remarks on missing ranks; null: these do not name current calls.
base::Result<std::shared_ptr<Comm>> make_mpi(std::uintptr_t communicator,
                                             const Patience& patience = {},
                                             CallLookup lookup = nullptr);
/// Makes MPI_Finalize free the communicators of all Comms. Called after MPI_Init: MPI_Finalize
/// deletes attributes of MPI_COMM_SELF in reverse order, so that callbacks of attributes set later
/// can still use Comms. make_mpi() calls it, too.
void prepare_finalize();
/// MPI_Finalize calls `work`, which sends no messages, after these callbacks and before it frees
/// anything. Only the last given function is called.
void work_in_finalize(void (*work)());
/// A Patience for make_mpi(): the lowest rank of this host that has arrived reports once which
/// ranks of the host have arrived, and the calls that `lookup` knows of others. `path`: the file to
/// open.
Patience watch_file_open(std::uintptr_t communicator, const WaitLimits& limits,
                         const std::string& path, void (*say)(const std::string& text),
                         CallLookup lookup = nullptr);

}  // namespace pario::comm
