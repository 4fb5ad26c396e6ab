// Room comm: ranks behind one interface. Members: self (one rank), threads as ranks (tests, TSan), MPI (make_mpi, on the PMPI functions of
// room mpi). Nobody else in the engine knows what a rank is.
//
// What waits here sleeps: inside a node on futexes, between nodes by testing with growing pauses. Every wait has a Patience: it looks
// whether the ranks waited for are still alive, and whom the watchdog should name.
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

#include "base/base.hpp"

namespace pario::comm {

/// Seconds after which a host that does not answer is taken for dead.
inline constexpr std::uint64_t kSilence = 30;

/// Which ranks share memory. Nodes are numbered by their lowest rank.
struct Topology {
  std::vector<int> node_of;                ///< by rank
  std::vector<std::vector<int>> ranks_of;  ///< by node, ascending; the first is the node's leader
  int nodes() const { return static_cast<int>(ranks_of.size()); }
};

/// What to do while waiting: `look` is called about every `interval_ns` of waiting with the nanoseconds waited so far; an Error ends the
/// wait with it (see Comm::check; the watchdog lost patience). `progress` (Comm::progress) is called when a wait has become a long one, and
/// then again and again: the rank waited for may itself wait for a message from this process.
struct Patience {
  std::uint64_t interval_ns = 200'000'000;
  std::function<base::Status(std::uint64_t waited_ns)> look = {};
  std::function<void()> progress = {};
};

/// One wait with a Patience, for those that sleep by themselves: at most nap_ns() at a time, with keep() in between.
class Vigil {
 public:
  /// The wait begins. `patience` outlives it.
  explicit Vigil(const Patience& patience);
  std::uint64_t waited_ns() const { return now_ - begin_; }  ///< until the last keep()
  std::uint64_t nap_ns() const;                              ///< until something is due
  /// Does what is due. An Error ends the wait.
  base::Status keep();

 private:
  const Patience& patience_;
  std::uint64_t begin_, now_, look_due_, progress_due_;
};

/// An Error as plain words, for shared memory and messages; texts are cut off.
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

/// "1, 2 and 5", "0-7 and 9": ascending numbers; of many the first ones, and how many more.
std::string listed(std::span<const int> numbers);
/// "rank 1", "ranks 1, 2 and 5", "ranks 0-7 and 9"
std::string named(std::span<const int> ranks);

/// Sleeps until `done()` is true; `word` must change (and be woken) when it may have become so.
base::Status wait_until(const base::FutexWord& word, const std::function<bool()>& done, const Patience& patience);

/// Memory of all ranks of a node, zeroed at first, page-aligned, at other addresses in other processes: keep offsets in it, no pointers.
/// Unmapped when the last copy goes; nothing is left behind when processes are killed.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual std::byte* data() const = 0;
  virtual std::size_t size() const = 0;
};

/// A message under way between ranks. Destroyed before it is done (after a failed wait), it is withdrawn.
class Pending {
 public:
  virtual ~Pending() = default;
  /// True once it has arrived or left its buffer. Thread rules as for Comm.
  virtual bool test() = 0;
  /// Once it is done: 0, or the errno of why it failed; wait_all() makes an Error of that.
  virtual int error() const { return 0; }
};

/// Which ranks have come to the collective call of this rank.
struct Attendance {
  std::vector<int> present, missing;
  std::string remarks = {};  ///< on missing ranks: "rank 3: its last call ..."; may be empty
  bool complete = true;      ///< false: other nodes have not answered yet; their ranks count as missing
  bool reported = false;     ///< a rank of another node reports them
};

/// Some ranks. A Patience without `look` has check(), one without `progress` makes that of the Comm. Calls are made by one thread of each
/// rank at a time (the MPI member: by any thread only where thread_safe()); check(), fail() and what tells of failures by any.
///
/// A Comm fails for all: once a collective call or a message has ended with an error on one rank, or fail() was called, all collective
/// calls of all ranks end with that error, those of other nodes when they look (check()).
class Comm {
 public:
  virtual ~Comm() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const Topology& topology() const = 0;
  /// Calls may come from a thread of pario's own while the program's threads are in MPI.
  virtual bool thread_safe() const = 0;
  /// Lets the MPI move the program's messages, which nobody else may do while a thread of the program sleeps in here. Nothing where the
  /// calling thread must not call MPI: one of pario's own (see mark_own_thread), unless thread_safe().
  virtual void progress() const {}
  /// Whether the process of a rank of this node is alive (true where that cannot be told).
  virtual bool alive(int rank) const = 0;
  /// Why this Comm has failed; looks whether a rank of this node has died (ESRCH), what other nodes have to tell, and whether another host
  /// is gone: its leader has ended, or its kernel has answered nothing for `silence_s` seconds (0: that counts for nothing).
  virtual base::Status check(std::uint64_t silence_s) = 0;
  virtual void fail(const base::Error& error) = 0;
  virtual bool failed() const = 0;
  /// The first error of the node; whoever asks for it first tells the other nodes.
  virtual base::Status failure() = 0;
  /// This rank begins a collective call named `call` (static text), of which the functions below
  /// are parts. Calls are counted, so that others can tell who has come. Costs a few stores into
  /// memory.
  virtual void announce(const char* call) = 0;
  /// Who has come to the call that this rank announced last. The first time the other nodes are
  /// asked; then again until it is complete. Ranks of other nodes answer while they wait in a call,
  /// in check().
  virtual Attendance attendance() = 0;
  /// True for one rank of the node, until release_report(): the one that reports missing ranks.
  virtual bool claim_report() = 0;
  virtual void release_report() = 0;
  /// A rank's number in MPI_COMM_WORLD, for messages to people.
  virtual int world_rank(int rank) const = 0;

  /// Collective over the ranks of a node. Null on all of them when there is no memory to share, or when the Comm has failed.
  virtual std::shared_ptr<SharedMemory> share(std::size_t size, const Patience& patience = {}) = 0;

  /// Collective over all ranks: `each` bytes of every rank, in rank order.
  virtual base::Status allgather(const void* mine, std::size_t each, void* all, const Patience& patience = {}) = 0;
  virtual base::Status broadcast(void* data, std::size_t size, int root, const Patience& patience = {}) = 0;
  virtual base::Status barrier(const Patience& patience = {}) = 0;
  /// Collective: another one of the same ranks, whose messages never meet those of this one (for a file's own worker thread). Null on
  /// all of a node where share() is.
  virtual std::shared_ptr<Comm> duplicate(const Patience& patience = {}) = 0;

  /// Buffers stay until test() is true. Messages between two ranks with the same tag keep their order. 0 <= tag < 2^15. Both sides
  /// name the same size, which may pass 2^31.
  virtual std::unique_ptr<Pending> send(int to, int tag, std::span<const std::byte> data) = 0;
  virtual std::unique_ptr<Pending> receive(int from, int tag, std::span<std::byte> data) = 0;

  int node() const { return topology().node_of[static_cast<std::size_t>(rank())]; }
  const std::vector<int>& node_ranks() const { return topology().ranks_of[static_cast<std::size_t>(node())]; }
  int local_rank() const;
  int local_size() const { return static_cast<int>(node_ranks().size()); }
  int leader() const { return node_ranks().front(); }
};

/// The calling thread is one of pario's own from now on, not one of the program's.
void mark_own_thread();
bool is_own_thread();

/// "60", "0.2"
std::string seconds_text(std::chrono::milliseconds time);

/// How long a rank may wait for others; zero: for ever.
struct WaitLimits {
  std::chrono::milliseconds report = {};   ///< until the missing ranks are named, once
  std::chrono::milliseconds give_up = {};  ///< until the wait fails (ETIMEDOUT)
  std::uint64_t silence_s = kSilence;      ///< of another host, until it counts as dead
};

/// Watches one rank's wait in one collective call: notices ranks that have died, names the ranks
/// that are missing, and gives up where that is asked for. Lives as long as the Patience it gives;
/// used by the thread that waits.
class Watchdog {
 public:
  struct Subject {
    const std::string& path;  ///< of the file, or another name for what the ranks work on
    const char* call;
    void (*say)(const std::string& text);  ///< prints a line for people
  };
  /// `reporter`: the Comm whose ranks report once; `comm` itself, or the one that it was duplicated
  /// from.
  Watchdog(Comm& comm, Comm& reporter, const WaitLimits& limits, const Subject& subject)
      : comm_(comm), reporter_(reporter), limits_(limits), subject_(subject), due_(limits.report) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  Patience patience();

 private:
  base::Status look(std::chrono::nanoseconds waited);
  void call_roll(std::chrono::nanoseconds waited);
  void report(const Attendance& attendance) const;
  void put_off(std::chrono::nanoseconds waited);

  enum class Stage : std::uint8_t { waiting, asking, finished };
  Comm& comm_;
  Comm& reporter_;
  const WaitLimits limits_;
  const Subject subject_;
  Stage stage_ = Stage::waiting;
  std::chrono::nanoseconds due_, asked_ = {};
};

/// Waits for all of them, with pauses that grow from microseconds to a millisecond.
base::Status wait_all(std::span<const std::unique_ptr<Pending>> messages, const Patience& patience = {});

std::shared_ptr<Comm> make_self();

/// Runs `body(comm)` on as many threads as ranks; rank r is on node `node_of[r]`. Rethrows nothing: bodies must not throw.
void run_as_threads(std::span<const int> node_of, const std::function<void(std::shared_ptr<Comm>)>& body);

/// Collective over `communicator` (a handle of the process's MPI, as a word): a Comm that nobody else has, whose messages never meet the
/// program's. So threads may make some over different communicators at the same time; over one, they come in the same order on all ranks,
/// as all collective calls. Nodes: MPI_Comm_split_type, further divided by PARIO_NODES=k (k pretend nodes, for tests) or MPICH's
/// MPIR_CVAR_NUM_CLIQUES. What is known of the ranks, and a duplicate of the communicator, is kept for the next ones of the same ranks in
/// the same order, until MPI_Finalize at most. From the second on, the death of a rank is noticed here too.
/// `patience` is that of the wait for ranks that have not come.
base::Result<std::shared_ptr<Comm>> make_mpi(std::uintptr_t communicator, const Patience& patience = {});
/// A Patience for make_mpi(): names the ranks of this host that have come, once, by the lowest of
/// them. `path`: the file to open.
Patience watch_opening(std::uintptr_t communicator, const WaitLimits& limits, const std::string& path,
                       void (*say)(const std::string& text));

}  // namespace pario::comm
