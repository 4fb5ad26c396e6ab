// A stream of collective calls on one file: the exchange they go through, and their numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/comm.hpp"
#include "engine/mover.hpp"
#include "engine/watch.hpp"
#include "exchange/exchange.hpp"

namespace pario::engine {

/// What a call brings to the meeting.
struct Call {
  const char* name = "";
  std::uint64_t check = 0;     ///< must be equal on all ranks; compared where it or `compare_names` is set
  bool compare_names = false;  ///< the function must be the same on all ranks (check mode)
  int failed = 0;              ///< errno of a rank that cannot take part
  pattern::Summary summary = {};
  plan::Direction direction = plan::Direction::write;
  Limits limits = {};
};

/// Used by one thread at a time.
class Stream {
 public:
  /// Collective. A communicator of one rank needs no exchange. `call`: that it is made for.
  Stream(std::shared_ptr<comm::Comm> comm, std::string path, std::uint64_t memory, const Call& call);

  /// Waits for all ranks. An error, the same on all of them, where a rank cannot take part or is in another call.
  base::Result<std::span<const exchange::Notice>> convene(const Call& call);
  /// The error of the lowest rank that has one.
  base::Status agree(const base::Status& mine, const Call& call);
  base::Status run(const plan::Plan& plan, const pattern::Access& access, exchange::Sink& sink, exchange::ChooseHoles choose,
                   const void* context, const Call& call, exchange::Tally& tally);
  /// Everybody's words, to all.
  base::Status gather(const void* mine, std::size_t each, void* all, const Call& call);

  exchange::Exchange& exchange() { return *exchange_; }

 private:
  base::Error located(base::Error error, const Call& call) const;
  base::Error refusal(std::span<const exchange::Notice> notices, const Call& call) const;
  std::vector<int> different(std::span<const exchange::Notice> notices, const Call& call) const;

  std::shared_ptr<comm::Comm> comm_;
  std::string path_;
  std::unique_ptr<exchange::Exchange> exchange_;
  exchange::Notice own_ = {};
  std::uint64_t sequence_ = 0;  // calls so far
};

}  // namespace pario::engine
