// The targets of a lab: the end of each request, and counts of all. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "instruments/lab/clock.hpp"

namespace pario::lab {

struct Speed {
  double rate = 0;  ///< bytes per second of a target; 0: no limit
  double link = 0;  ///< bytes per second of a client; 0: no limit
  Duration latency = 0;
  Duration lock_handover = 0;
  std::uint32_t in_flight = 8;  ///< writes per client and target that need no wait
};

enum class Kind : std::uint8_t { read, write, other };

struct Request {
  std::uint32_t target;
  std::uint64_t bytes;
  bool handed_over = false;  ///< the lock of the object comes from another client
  bool rest = false;         ///< the end of a divided request; costs nothing
};

struct Counts {
  std::uint64_t reads = 0, writes = 0, others = 0, bytes_read = 0, bytes_written = 0,
                hand_overs = 0;
  Duration busy = 0;
};

struct Booked {
  Moment done = 0;    ///< all bytes are on the targets
  Moment resume = 0;  ///< the caller may continue
};

class Targets {
 public:
  Targets(std::uint32_t count, const Speed& speed);

  /// Adds requests that a client sends at the same time.
  Booked book(Client client, Kind kind, std::span<const Request> requests, Moment now);

  std::uint32_t size() const { return static_cast<std::uint32_t>(rows_.size()); }
  const Speed& speed() const { return speed_; }
  std::vector<Counts> counts() const;
  void reset_counts();
  /// Returns the first target of a new file with `stripes` stripes; files alternate between
  /// targets.
  std::uint32_t next_start(std::uint32_t stripes);

 private:
  struct Row {
    Queue queue;
    Counts counts;
    Duration busy_before = 0;  // before the counts were reset
  };
  static void count(Row& row, Kind kind, const Request& request);
  Moment admit(Client client, const Request& request, Moment done);

  Speed speed_;
  mutable std::mutex mutex_;
  std::vector<Row> rows_;
  std::map<Client, Queue> links_;
  std::map<std::pair<Client, std::uint32_t>, Window> windows_;
  std::uint32_t next_ = 0;
};

}  // namespace pario::lab
