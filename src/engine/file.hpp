// The SharedFile.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/gate.hpp"
#include "engine/merged.hpp"
#include "engine/mover.hpp"
#include "engine/queue.hpp"
#include "engine/shared_pointer.hpp"
#include "engine/stream.hpp"
#include "engine/write_behind.hpp"

namespace pario::engine {

/// Statistics that several threads add to.
class Ledger {
 public:
  void add(const Statistics& more);
  Statistics total() const;

 private:
  mutable std::mutex mutex_;
  Statistics total_ = {};
};

/// Independent calls under way in the threads of the process. Outlives the file where one of them is late.
struct InFlight {
  base::FutexWord count{0};
  void begin() { count.fetch_add(1); }
  void end();
  void drain(const comm::Patience& patience) const;
};

class File final : public SharedFile {
 public:
  File(std::shared_ptr<comm::Comm> comm, const OpenRequest& request);
  ~File() override;

  /// The collective part of opening.
  base::Status open_all(const Opener& opener);

  base::Status close() override;
  base::Result<std::uint64_t> write(const pattern::Access& access, With with, const char* call) override;
  base::Result<std::uint64_t> read(const pattern::Access& access, With with, const char* call) override;
  void refuse(plan::Direction direction, const base::Error& error, const char* call) override;
  void start_refusal(plan::Direction direction, const base::Error& error, const char* call) override;
  void miss(std::optional<plan::Direction> direction, const base::Error& error, const char* call) override;
  std::shared_ptr<Operation> start(plan::Direction direction, const pattern::Access& access, With with, const char* call) override;

  base::Result<std::uint64_t> size() override;
  base::Status resize(std::uint64_t size) override;
  base::Status preallocate(std::uint64_t size) override;
  base::Status sync() override;
  void set_atomic(bool atomic) override;
  bool atomic() const override { return terms()->atomic; }

  base::Result<std::uint64_t> advance_shared(std::uint64_t bytes) override;
  base::Result<std::uint64_t> shared_position() override;
  base::Status seek_shared(std::uint64_t position) override;
  base::Result<std::uint64_t> order_shared(std::uint64_t bytes, const char* call) override;

  base::Status agree(std::uint64_t hash, const base::Status& mine, const char* call) override;

  const comm::Comm& comm() const override { return *comm_; }
  const std::string& path() const override { return request_.path; }
  const hints::FileHints& hints() const override { return effective_; }
  base::Status set_hints(const hints::FileHints& hints) override;
  bool visible_at_once() const override;
  std::vector<HintOutcome> audit() const override;
  Statistics statistics() const override { return ledger_.total(); }

  /// What this rank keeps back, to the file; also at the end of the program, when nobody can be asked any more.
  void write_behind();
  base::Status save();
  /// What has been kept back for longer than its hint lets it, to the file; `now` is of base::monotonic_ns().
  void write_late(std::uint64_t now);

 private:
  using Count = base::Result<std::uint64_t>;
  using Direction = plan::Direction;
  struct Opened;  // what rank 0 found

  // open.cpp
  base::Status open_first(const Opener& opener, Opened& opened);
  base::Status open_readable(const Opener& opener);
  base::Status open_mine(const Opener& opener, int flags);
  storage::OpenRequest storage_request(int flags) const;
  base::Status spread(Opened& opened, const base::Status& mine);
  base::Status broadcast(void* data, std::size_t size, const char* call);
  base::Status broadcast(hints::FileHints& hints);
  void take_effect(const Opened& opened);
  base::Status make_common(std::uint64_t number);
  base::Status make_streams();
  void make_claims(std::uint64_t number);
  base::Status failure(const char* call);

  // transfer.cpp
  Count transfer(Direction direction, const pattern::Access& access, With with, const char* call);
  Count alone(Direction direction, const pattern::Access& access, const char* call, const Terms& terms);
  Mover mover(const Terms& terms, Mover::Figures& figures) { return {*file_, terms, images_, *threads_, *gate_, *claims_, figures}; }
  Count independent(Direction direction, const pattern::Access& access, const pattern::Summary& summary, const Terms& terms,
                    Statistics& figures);
  Count and_verified(Direction direction, const pattern::Access& access, const pattern::Summary& summary, const Terms& terms,
                     Statistics& figures);
  Count together(Stream& stream, Direction direction, const pattern::Access& access, const char* call, const Terms& terms);
  base::Result<std::vector<pattern::Summary>> gathered(Stream& stream, const Call& call, Statistics& figures);
  Count told(Stream& stream, const Call& call, const Count& mine, Statistics& figures);
  Count carried_out(Stream& stream, const Call& call, std::span<const pattern::Summary> ranks, const pattern::Access& access,
                    const Terms& terms, Statistics& figures);
  Count through_windows(Stream& stream, const plan::Plan& plan, const Call& call, const pattern::Access& access, const Terms& terms,
                        Statistics& figures);
  plan::Plan plan_of(std::span<const pattern::Summary> ranks, Direction direction, const Terms& terms) const;
  base::Status verified(Stream& stream, const Call& call, const pattern::Access& access, const Terms& terms);
  std::shared_ptr<Operation> start_alone(Task::Work work);
  std::shared_ptr<Operation> start_together(Task::Work work);
  /// The stream of non-blocking calls. Made by the worker at its first call, because that waits for
  /// the other ranks.
  Stream& started_stream(const char* call);
  void run_deferred();
  /// Collective calls keep the order in which the program made them.
  void finish_started();

  // keep.cpp
  Count in_order(Direction direction, const pattern::Access& access, const pattern::Summary& summary, const Terms& terms,
                 Statistics& figures);
  bool keeps_back(Direction direction, const pattern::Summary& summary, const Terms& terms) const;
  bool merges(Direction direction, const Terms& terms) const;
  Count merge(Stream& stream, const Call& call, std::span<const pattern::Summary> ranks, const pattern::Access& access, const Terms& terms,
              Statistics& figures);
  Count add_to_merged(const pattern::Access& access, const Call& call, std::span<const pattern::Summary> ranks, Statistics& figures);
  /// Collective: what is merged is exchanged.
  base::Status finish_merged(Stream& stream);
  /// Collective: nothing is kept back any more. Errors of this rank or of all of them.
  base::Status finish_writes();
  base::Status write_kept(const pattern::Access& access);
  base::Status write_merged_of_mine();
  std::uint64_t end_of_kept() const { return keeping_ ? std::max(behind_.end(), merged_.end()) : 0; }
  void announce_keeping();
  void forget_keeping();

  base::Status by_rank_0(const char* name, std::uint64_t check, const std::function<base::Status()>& act, base::Status mine = {});
  void close_report();
  base::Error leave(const base::Error& error);
  base::Status join();
  base::Status after_closing(bool complete);
  comm::WaitLimits limits() const { return {effective_.pario_watchdog, effective_.pario_patience, effective_.pario_silence}; }
  comm::Watchdog watchdog(const char* call) const;
  Call data_call(Direction direction, const char* name, const Terms& terms) const;
  void refuse_in(Stream& stream, Direction direction, const base::Error& error, const char* name, const Terms& terms);
  Call call_of(const char* name, std::uint64_t check = 0) const;
  base::Error located(base::Error error, const char* call) const;
  /// Collective: the outcome of all ranks; `operation` is what an error of this one is said to have happened in.
  base::Status settle(const base::Status& mine, const char* operation, const Call& call);
  std::shared_ptr<const Terms> terms() const;
  void set_terms(Terms terms);
  /// That of waits for this rank's own threads.
  comm::Patience patience() const {
    return {.progress = [this] { comm_->progress(); }};
  }
  bool first() const { return comm_->rank() == 0; }

  std::shared_ptr<comm::Comm> comm_;
  OpenRequest request_;
  hints::FileHints effective_;
  std::string striping_reason_;
  std::unique_ptr<storage::File> file_;
  std::shared_ptr<std::shared_mutex> threads_;
  Images images_;
  mutable std::mutex terms_mutex_;
  std::shared_ptr<const Terms> terms_;
  std::shared_ptr<comm::SharedMemory> common_memory_;
  std::unique_ptr<SharedPointer> pointer_;
  std::vector<Plain> own_common_;
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<Claims> claims_;
  Ledger ledger_;
  std::uint64_t open_ns_ = 0;
  bool readable_ = true;  // by those that write it: sieving reads
  bool closed_ = true;

  std::atomic<bool> keeping_{false};  // something has been kept back since the file was opened
  Merged merged_;
  WriteBehind behind_{[this](const pattern::Access& access) { return write_kept(access); }, patience()};
  std::shared_ptr<InFlight> in_flight_ = std::make_shared<InFlight>();
  std::unique_ptr<Stream> stream_;           // of blocking collective calls
  std::shared_ptr<comm::Comm> worker_comm_;  // of non-blocking ones; null: nobody but the program's thread may communicate
  std::unique_ptr<Stream> worker_stream_;    // made by the worker, at its first call
  std::mutex deferred_mutex_;
  std::deque<std::shared_ptr<Task>> deferred_;
  Worker worker_;  // last: ends first
};

}  // namespace pario::engine
