// The sequence of collective calls on one file: meetings of the ranks, and their exchange.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/comm.hpp"
#include "parallel/engine/run_ahead.hpp"
#include "parallel/exchange/exchange.hpp"

namespace pario::engine {

/// One rank's part of a collective call.
struct Call {
  const char* name = "";
  std::uint64_t check = 0;                ///< must be equal on all ranks
  std::optional<base::Error> error = {};  ///< the reason why this rank cannot take part
  bool moves_data = false;                ///< a read or write; it may meet one of another name
  bool compare_names = false;             ///< unless this is set (check mode)
  bool keeps_series = false;              ///< the data access that follows may be one of a series
  std::uint16_t needs = 0;                ///< bits for the other ranks (exchange::Notice)
  pattern::Summary summary = {};
  plan::Direction direction = plan::Direction::write;
  comm::WaitLimits limits = {};
};

/// The collective calls of one Comm. All functions but miss() are collective; they are called by
/// one thread at a time.
class CollectiveCalls {
 public:
  /// Collective. A communicator of one rank needs no exchange. `memory`: the limit of the
  /// collective buffers of a node. `call`: the first call.
  CollectiveCalls(std::shared_ptr<comm::Comm> comm, std::string path, std::uint64_t memory,
                  const Call& call);

  /// Waits for all ranks and returns their notices, valid until the next call. An Error, the same
  /// on all ranks, if a rank cannot take part or is in another call.
  base::Result<std::span<const exchange::Notice>> meet(const Call& call);
  /// Records that this rank has not taken part in `call` and will not; `call.error` is the reason.
  /// Ranks that wait in that call get the error when this rank makes its next call, which is made
  /// after that. Thread-safe.
  void miss(const Call& call);
  /// From now on calls may belong to series, and share their outcomes late (defer_error()).
  void set_run_ahead(std::unique_ptr<RunAhead> run_ahead) { run_ahead_ = std::move(run_ahead); }
  /// Null: all calls meet.
  RunAhead* run_ahead() const { return run_ahead_.get(); }
  /// True if this call belongs to a series (see RunAhead): begin_without_meeting() replaces meet().
  bool needs_no_meeting(plan::Direction direction, bool compare_names);
  /// Returns the number of the call.
  std::uint64_t begin_without_meeting(plan::Direction direction, const char* name);
  std::uint64_t number() const { return sequence_; }  ///< of the latest call
  /// Keeps the error of this rank's part of a call, which the other ranks do not know. The next
  /// meeting shares it with them.
  void defer_error(const base::Error& error);
  /// Returns and clears the error that another rank had deferred until the last meeting.
  base::Status take_earlier_error() { return std::exchange(earlier_, {}); }
  /// The limits of a wait in `call`, for this rank's thread.
  comm::Watchdog watchdog(const Call& call) const;

  /// Returns the error of the lowest rank that has one.
  base::Status agree(const base::Status& mine, const Call& call);
  /// Executes a plan through collective buffers, after meet().
  base::Status run(const plan::Plan& plan, const pattern::Access& access,
                   exchange::WindowFile& file, const Call& call, exchange::Counters& counters);
  /// Collects `each` bytes of every rank in rank order.
  base::Status gather(const void* mine, std::size_t each, void* all, const Call& call);

  exchange::Exchange& exchange() { return *exchange_; }

 private:
  using Notices = std::span<const exchange::Notice>;
  struct Explanation;
  enum class Meeting : std::uint8_t { good, refused, mismatched, of_missed_call };
  struct Verdict {
    Meeting meeting;
    std::uint32_t call = 0;  ///< of_missed_call: the call of the other ranks
  };

  base::Error complete_error(base::Error error, const Call& call) const;
  base::Result<Notices> exchange_notices(const Call& call, const std::optional<Call>& missed);
  Verdict judge(Notices notices, const Call& call) const;
  std::optional<Call> take_missed_call();
  const Call* find_missed_call(const Verdict& verdict, const Call& call,
                               const std::optional<Call>& missed) const;
  base::Error end_failed_meeting(Meeting meeting, Notices notices, const Call& call);
  base::Error share_error(Meeting meeting, const Call& call);
  base::Status share_earlier_errors(const Call& call);
  void make_up_for_missed_call();
  base::Error describe_mismatch(std::span<const Explanation> ranks, const Call& call) const;

  std::shared_ptr<comm::Comm> comm_;
  std::string path_;
  std::unique_ptr<exchange::Exchange> exchange_;
  exchange::Notice own_ = {};
  std::uint64_t sequence_ = 0;  // calls so far
  std::unique_ptr<RunAhead> run_ahead_;
  std::optional<base::Error> deferred_;  // of this rank; the other ranks do not know it
  base::Status earlier_;                 // of another rank; this rank has not returned it
  std::mutex missed_mutex_;
  std::optional<Call> missed_;
  std::atomic<bool> has_missed_{false};  // missed_ is set
};

}  // namespace pario::engine
