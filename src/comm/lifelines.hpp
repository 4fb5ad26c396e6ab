// TCP connections between the leaders of hosts, for one purpose: to learn that a host or a leader is gone.
//
// Nothing goes through them but greetings and farewells. That a host lives is what its kernel answers when the other kernel asks (TCP
// keepalive): that needs no thread, and neither the MPI nor the program, which may compute, be stopped or be swapped out meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace pario::comm {

/// Where a leader is found; plain words, sent as they are.
struct Door {
  static constexpr std::size_t kAddresses = 4;
  std::uint64_t token = 0;                            ///< known to those only who were told; 0: there is no door
  std::array<std::uint32_t, kAddresses> places = {};  ///< IPv4 addresses in the network's order of bytes; 0: no more
  std::uint16_t port = 0;                             ///< in the network's order
};

/// For how long somebody has looked without a break. Who was stopped himself cannot tell whether others were silent.
class Attention {
 public:
  /// A look at the time `now`.
  std::uint64_t look(std::uint64_t now);

 private:
  std::uint64_t begin_ = 0, last_ = 0;
};

/// Whether two of `count` leaders are connected: they are a power of two apart in the ring of all. Up to five know each other; more have
/// at most 2 log2(count) neighbours each.
bool are_neighbours(std::size_t one, std::size_t other, std::size_t count);

class Lifeline;

/// Those of one leader. Thread-safe but for tie().
class Lifelines {
 public:
  Lifelines();
  /// Takes leave: from now on nobody misses this leader.
  ~Lifelines();
  Lifelines(const Lifelines&) = delete;
  Lifelines& operator=(const Lifelines&) = delete;

  const Door& door() const { return door_; }
  /// Connects to the neighbours, number `me` of `doors` being this leader's. Waits for them, but no longer than a moment: those that come
  /// later are let in by lost(), and those that cannot be reached are never missed.
  void tie(std::size_t me, std::vector<Door> doors);

  struct Loss {
    std::size_t leader;
    bool silent;  ///< its host does not answer; else its process has ended
  };
  /// A neighbour that is lost on every connection there was: its process has ended without taking leave, or its host has not answered for
  /// `silence_ns` (0: that counts for nothing). Does not wait.
  std::optional<Loss> lost(std::uint64_t silence_ns);

 private:
  void call(std::size_t leader);
  void let_in();
  void step();
  bool is_tied_to(std::size_t leader) const;
  bool is_complete() const;
  std::optional<Loss> loss_of(std::size_t leader, std::uint64_t silence_ns) const;

  std::mutex mutex_;
  Door door_;
  int listener_ = -1;
  std::size_t me_ = 0;
  std::vector<Door> doors_;
  std::vector<std::size_t> neighbours_;
  std::vector<std::unique_ptr<Lifeline>> lines_;
  Attention attention_;
};

}  // namespace pario::comm
