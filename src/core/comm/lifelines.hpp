// TCP connections between the leaders of hosts, which detect dead hosts and dead leaders.
//
// They carry a handshake and the announcement that a leader leaves. A host is alive while its
// kernel answers the keep-alives of the other kernel (TCP keepalive): that needs no thread, nor
// that the MPI and the program run; the program may compute, be stopped or be swapped out.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace pario::comm {

/// The address at which a leader listens; plain words, sent as they are.
struct ListenAddress {
  static constexpr std::size_t kAddresses = 4;
  std::uint64_t token = 0;  ///< a secret of the leaders; 0: it does not listen
  std::array<std::uint32_t, kAddresses> addresses =
      {};                  ///< IPv4 addresses in the network's order of bytes; 0: no more
  std::uint16_t port = 0;  ///< in the network's order
};

/// The time for which this process has looked at its connections without a break. A process that
/// was itself stopped cannot tell whether others were silent.
class LookPeriod {
 public:
  /// A look at the time `now`.
  std::uint64_t look(std::uint64_t now);

 private:
  std::uint64_t begin_ = 0, last_ = 0;
};

/// True if two of `count` leaders are connected: they are a power of two apart in the ring of all
/// leaders. Up to five leaders are all connected; of more, each has at most 2 log2(count)
/// neighbours.
bool are_neighbours(std::size_t one, std::size_t other, std::size_t count);

class Lifeline;

/// The connections of one leader. Thread-safe except for connect().
class Lifelines {
 public:
  Lifelines();
  /// Announces that this leader leaves: its end then counts as no failure.
  ~Lifelines();
  Lifelines(const Lifelines&) = delete;
  Lifelines& operator=(const Lifelines&) = delete;

  const ListenAddress& address() const { return own_address_; }
  /// Connects to the neighbours, number `me` of `listeners` being this leader's. Waits for them for
  /// 0.2 s at most: find_loss() accepts later ones, and does not watch leaders that cannot be
  /// reached.
  void connect(std::size_t me, std::vector<ListenAddress> listeners);

  struct Loss {
    std::size_t leader;
    bool silent;  ///< its host does not answer; else its process has ended
  };
  /// Returns a neighbour lost on all of its connections: its process has ended unannounced, or its
  /// host has not answered for `silence_ns` (0: silence does not count). Does not wait.
  std::optional<Loss> find_loss(std::uint64_t silence_ns);

 private:
  void connect_to(std::size_t leader);
  void accept_connections();
  void step();
  bool is_connected_to(std::size_t leader) const;
  bool is_complete() const;
  std::optional<Loss> loss_of(std::size_t leader, std::uint64_t silence_ns) const;

  std::mutex mutex_;
  ListenAddress own_address_;
  int listener_ = -1;
  std::size_t me_ = 0;
  std::vector<ListenAddress> listeners_;
  std::vector<std::size_t> neighbours_;
  std::vector<std::unique_ptr<Lifeline>> lines_;
  LookPeriod period_;
};

}  // namespace pario::comm
