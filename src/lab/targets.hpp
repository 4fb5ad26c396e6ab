// The targets of a lab: what is asked of them, when it is done, and how much it was. Threads may use it at the same time.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "lab/clock.hpp"

namespace pario::lab {

struct Speed {
  double rate = 0;  ///< bytes per second of a target; 0: no limit
  double link = 0;  ///< bytes per second of a client; 0: no limit
  Duration latency = 0;
  Duration lock_handover = 0;
  std::uint32_t in_flight = 8;  ///< writes per client and target that are not waited for
};

enum class Kind : std::uint8_t { read, write, other };

struct Request {
  std::uint32_t target;
  std::uint64_t bytes;
  bool handed_over = false;  ///< the lock of the object comes from another client
  bool rest = false;         ///< of the request before; costs nothing
};

struct Counts {
  std::uint64_t reads = 0, writes = 0, others = 0, bytes_read = 0, bytes_written = 0, hand_overs = 0;
  Duration busy = 0;
};

struct Booked {
  Moment done = 0;   ///< all of it is on the targets
  Moment go_on = 0;  ///< who asked may go on
};

class Targets {
 public:
  Targets(std::uint32_t count, const Speed& speed);

  /// Requests that leave a client at the same time.
  Booked book(Client client, Kind kind, std::span<const Request> requests, Moment now);

  std::uint32_t size() const { return static_cast<std::uint32_t>(rows_.size()); }
  const Speed& speed() const { return speed_; }
  std::vector<Counts> counts() const;
  void reset_counts();
  /// Targets are taken in turn: the first for a new file that gets so many.
  std::uint32_t next_start(std::uint32_t stripes);

 private:
  struct Row {
    Queue queue;
    Counts counts;
    Duration busy_before = 0;  // the counts were reset
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
