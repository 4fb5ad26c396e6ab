// The state of one open file that all parts of the engine share.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include "core/comm/comm.hpp"
#include "core/file/file.hpp"
#include "parallel/engine/collective_calls.hpp"
#include "parallel/engine/engine.hpp"
#include "parallel/engine/handle_locks.hpp"
#include "parallel/engine/node_locks.hpp"
#include "parallel/engine/policy.hpp"
#include "parallel/engine/read_ahead.hpp"
#include "parallel/engine/sieve_buffers.hpp"
#include "parallel/engine/write_gate.hpp"

namespace pario::engine {

/// The largest windows of a file's collective calls, and the most nodes that had some; 0: no call
/// had windows.
struct UsedWindows {
  std::uint64_t bytes = 0, nodes = 0;
};

/// The outcome of moving one run of bytes. `by_system`: the bytes that a system call has moved,
/// more than those of the run if it read ahead; empty: there was no system call, or it has failed.
struct MovedRun {
  base::Result<std::uint64_t> bytes;
  std::optional<std::uint64_t> by_system = {};
};

/// The locks that separate a read-modify-write from other writes of the file.
struct WriteGuards {
  std::shared_ptr<std::shared_mutex> threads;  ///< threads of this process
  std::unique_ptr<WriteGate> gate = {};        ///< ranks of this node
  std::unique_ptr<NodeLocks> node = {};        ///< ranks and threads of the only node, or null
  std::unique_ptr<HandleLocks> handles = {};   ///< other handles of the file
};

/// One file as one rank has opened it. Thread-safe once the file is open, except for the setters:
/// only collective calls use these, while no other call is in flight.
class FileContext {
 public:
  FileContext(std::shared_ptr<comm::Comm> comm, const OpenRequest& request);

  comm::Comm& comm() const { return *comm_; }
  const std::shared_ptr<comm::Comm>& shared_comm() const { return comm_; }
  bool is_first() const { return comm_->rank() == 0; }
  const std::string& path() const { return path_; }

  file::File& file() const { return *file_; }
  bool has_file() const { return file_ != nullptr; }
  void set_file(std::unique_ptr<file::File> file) { file_ = std::move(file); }
  /// After every change of the file by this rank.
  void note_change() {
    if (read_ahead_) read_ahead_->note_change();
    note_event();
    set_changed();
  }
  /// Notes that bytes of this rank may not be on the device.
  void set_changed() { changed_.store(true, std::memory_order_release); }
  /// True if the rank has changed the file, or kept a write, since the last call.
  bool take_changed() { return changed_.exchange(false, std::memory_order_acq_rel); }
  void set_read_ahead(std::unique_ptr<ReadAhead> read_ahead) {
    read_ahead_ = std::move(read_ahead);
  }
  /// Null unless the policy permits windows that are read ahead.
  ReadAhead* read_ahead() const { return reads_ahead_ ? read_ahead_.get() : nullptr; }
  WriteGuards& guards() { return guards_; }
  SieveBuffers& sieve_buffers() { return sieve_buffers_; }

  /// The hints in force, as MPI_File_get_info answers them.
  const hints::FileHints& hints() const { return hints_; }
  std::shared_ptr<const AccessPolicy> policy() const;
  /// The policy for a call of the program: no other call replaces it meanwhile.
  const AccessPolicy& policy_of_call() const { return *policy_; }
  /// Replaces the policy, and with it hints().
  void set_policy(AccessPolicy policy);
  /// The number of the policies so far.
  std::uint64_t policy_number() const { return policy_number_; }
  void set_hints(const hints::FileHints& hints) { hints_ = hints; }

  void add(const Statistics& more);
  /// Counts a call of the program that has moved one run of bytes, or has failed. `ahead`: without
  /// a meeting.
  void count_run(plan::Direction direction, With with, bool ahead, base::Extent where,
                 const MovedRun& run, std::uint64_t elapsed_ns);
  Statistics statistics() const;
  /// Notes the windows of a collective call, for the audit of hints.
  void note_windows(std::uint64_t bytes, std::uint64_t nodes);
  UsedWindows used_windows() const;

  /// Describes a collective call that moves no data; `check` must be equal on all ranks.
  Call describe_call(const char* name, std::uint64_t check = 0) const;
  comm::Watchdog watchdog(const char* call) const;
  /// The Patience of waits for this rank's own threads.
  comm::Patience patience() const;
  /// Adds call, path and rank if `error` lacks them.
  base::Error complete_error(base::Error error, const char* call) const;
  /// Collective: copies `size` bytes of rank 0 to all ranks.
  base::Status broadcast(void* data, std::size_t size, const char* call) const;

 private:
  comm::WaitLimits limits() const;

  std::shared_ptr<comm::Comm> comm_;
  const std::string path_;
  const std::function<base::Status()> interrupt_;
  hints::FileHints hints_;
  std::unique_ptr<file::File> file_;
  std::unique_ptr<ReadAhead> read_ahead_;
  bool reads_ahead_ = false;
  std::atomic<bool> changed_{false};
  WriteGuards guards_;
  SieveBuffers sieve_buffers_;
  mutable std::mutex policy_mutex_;
  std::shared_ptr<const AccessPolicy> policy_;
  std::uint64_t policy_number_ = 0;
  mutable std::mutex statistics_mutex_;
  Statistics statistics_ = {};
  UsedWindows windows_ = {};
};

/// Returns the lock between threads of this process that lock ranges of the file `path`, because
/// file locks hold only between processes. One per path.
std::shared_ptr<std::shared_mutex> process_lock(const std::string& path);

}  // namespace pario::engine
