// A stream of collective calls on one file: the exchange they go through, and their numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/comm.hpp"
#include "engine/mover.hpp"
#include "exchange/exchange.hpp"

namespace pario::engine {

/// What one rank brings to a collective call.
struct Call {
  const char* name = "";
  std::uint64_t check = 0;                ///< must be equal on all ranks
  std::optional<base::Error> error = {};  ///< why this rank cannot take part
  bool moves_data = false;                ///< a read or write, which meets those of other names, too
  bool compare_names = false;             ///< but not with this (check mode)
  pattern::Summary summary = {};
  plan::Direction direction = plan::Direction::write;
  comm::WaitLimits limits = {};
};

/// Used by one thread at a time, but for miss().
class Stream {
 public:
  /// Collective. A communicator of one rank needs no exchange. `reporter`: the Comm of the file, of
  /// which one rank names missing ranks. `call`: that it is made for.
  Stream(std::shared_ptr<comm::Comm> comm, std::shared_ptr<comm::Comm> reporter, std::string path, std::uint64_t memory, const Call& call);

  /// Waits for all ranks. An error, the same on all of them, where a rank cannot take part or is in another call.
  base::Result<std::span<const exchange::Notice>> convene(const Call& call);
  /// This rank has not taken part in `call`, whose `error` says why, and will not: if the others
  /// wait for it when this rank comes to its next call, they get the error, and the next call is
  /// made after that.
  void miss(const Call& call);
  /// The error of the lowest rank that has one.
  base::Status agree(const base::Status& mine, const Call& call);
  base::Status run(const plan::Plan& plan, const pattern::Access& access, exchange::Sink& sink, exchange::ChooseHoles choose,
                   const void* context, const Call& call, exchange::Tally& tally);
  /// Everybody's words, to all.
  base::Status gather(const void* mine, std::size_t each, void* all, const Call& call);

  exchange::Exchange& exchange() { return *exchange_; }

 private:
  using Notices = std::span<const exchange::Notice>;
  struct Excuse;
  enum class Meeting : std::uint8_t { good, refused, mismatched, of_missed_call };
  struct Verdict {
    Meeting meeting;
    std::uint32_t call = 0;  ///< of_missed_call: the call of those that have not missed it
  };

  comm::Watchdog watchdog(const Call& call) const;
  base::Error located(base::Error error, const Call& call) const;
  base::Result<Notices> meet(const Call& call, const std::optional<Call>& missed);
  Verdict judge(Notices notices, const Call& call) const;
  std::optional<Call> missed_call();
  base::Error error_of(Meeting meeting, const Call& call);
  base::Error mismatch_of(std::span<const Excuse> excuses, const Call& call) const;

  std::shared_ptr<comm::Comm> comm_, reporter_;
  std::string path_;
  std::unique_ptr<exchange::Exchange> exchange_;
  exchange::Notice own_ = {};
  std::uint64_t sequence_ = 0;  // calls so far
  std::mutex missed_mutex_;
  std::optional<Call> missed_;
};

}  // namespace pario::engine
