// Patience of a collective call: who has died, who has not come, and progress of the program's messages.
#pragma once

#include <cstdint>
#include <string>

#include "comm/comm.hpp"
#include "exchange/exchange.hpp"

namespace pario::engine {

/// How long a collective call may wait, in seconds; 0: for ever.
struct Limits {
  std::uint64_t watchdog = 0;              ///< until the ranks that have not come are named
  std::uint64_t patience = 0;              ///< until the call fails
  std::uint64_t silence = comm::kSilence;  ///< of a host, until it is taken for dead
};

/// Looks after the waiting of one rank in one collective call. Lives as long as the Patience it gives.
class Watch {
 public:
  /// `exchange` (may be null) tells who is absent from call number `sequence`.
  Watch(comm::Comm& comm, const exchange::Exchange* exchange, std::uint64_t sequence, Limits limits, const std::string& path,
        const char* call)
      : comm_(comm),
        exchange_(exchange),
        sequence_(sequence),
        path_(path),
        call_(call),
        next_ns_(limits.watchdog * 1'000'000'000),
        patience_(limits.patience),
        silence_(limits.silence) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  comm::Patience patience();

 private:
  base::Status look(std::uint64_t waited_ns);
  void report(std::uint64_t waited_ns) const;
  bool speaks(const std::vector<int>& absent) const;

  comm::Comm& comm_;
  const exchange::Exchange* exchange_;
  std::uint64_t sequence_;
  const std::string& path_;
  const char* call_;
  std::uint64_t next_ns_;  // when the watchdog speaks next; 0: never
  std::uint64_t patience_, silence_;
};

}  // namespace pario::engine
