// The member callback: another library (mpi4py, torch.distributed) carries the messages of the
// ranks.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/comm/comm.hpp"

namespace pario::comm {

/// A message of any size, and its sender.
struct Message {
  int from = -1;
  std::vector<std::byte> data = {};
};

/// Carries messages between ranks, in order between two of them. send() may be called by any
/// thread, the others by one thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Copies the message; does not wait until it is received.
  virtual base::Status send(int to, std::span<const std::byte> message) = 0;
  /// Returns the next message of any rank; empty if none has arrived. Does not wait.
  virtual base::Result<std::optional<Message>> receive() = 0;
  /// Sleeps until a message may have arrived, `longest_ns` at most.
  virtual void pause(std::uint64_t waited_ns, std::uint64_t longest_ns);
};

/// Distributes the messages of one Transport to Comms and channels. Any thread may call.
///
/// A channel carries messages of any size, without a receive posted before; all ranks number
/// channels alike.
class Router {
 public:
  explicit Router(std::shared_ptr<Transport> transport) : transport_(std::move(transport)) {}
  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }

  base::Status send_message(int to, int channel, std::span<const std::byte> data);
  /// A wait for one message in a channel.
  struct Wait {
    int channel = 0;
    int from = -1;                            ///< -1: any rank
    std::uint64_t begin_ns = 0;               ///< since when this rank waits (base::monotonic_ns)
    std::uint64_t patience_ns = 0;            ///< from `begin_ns` or the latest keep-alive
    std::function<base::Status()> look = {};  ///< called now and then; an Error ends the wait
  };
  /// Receives a message. Empty after the end of the patience. ESRCH if a rank of `comm`, a Comm on
  /// this Router, has died and the message has not arrived soon after.
  base::Result<std::optional<Message>> receive_message(Comm& comm, const Wait& wait);

  /// The destination of a message: the number of a Comm, and a tag in it.
  struct Address {
    std::uint32_t number = 0;
    std::int32_t tag = 0;
    auto operator<=>(const Address&) const = default;
  };
  /// A receive of known size. `done` is set under the Router's lock.
  struct Post {
    std::span<std::byte> data;
    bool done = false;
  };
  base::Status send(int to, Address address, std::span<const std::byte> data);
  void post(Address address, int from, const std::shared_ptr<Post>& post);
  /// Cancels a receive: the Router no longer uses the buffer of `post`.
  void withdraw(Address address, int from, const std::shared_ptr<Post>& post);
  bool is_done(const Post& post);
  /// Removes the oldest message of a rank (-1: of any) that no post has received.
  std::optional<Message> remove_message(Address address, int from);
  /// Distributes the messages that have arrived. Does not wait, not even for another thread in
  /// poll().
  base::Status poll();
  void pause(std::uint64_t waited_ns, std::uint64_t longest_ns);
  std::uint32_t take_number() { return ++numbers_; }  ///< of a new Comm; rank 0 gives them out

 private:
  struct Queue {
    std::deque<std::shared_ptr<Post>> posts;
    std::deque<std::vector<std::byte>> messages;
  };
  void deliver(Message&& message);

  std::shared_ptr<Transport> transport_;
  std::mutex receiving_;  // held while the Transport receives
  std::mutex mutex_;      // of the queues; never held while the Transport is called
  std::map<std::pair<Address, int>, Queue> queues_;
  std::atomic<std::uint32_t> numbers_{0};
};

/// Not collective: every rank is a node of its own, and dead ranks go undetected.
std::shared_ptr<Comm> make_callback(std::shared_ptr<Router> router);
/// Collective over a Comm of `router`: a Comm of the same ranks. Ranks with the same `label` are a
/// node and share memory; dead ranks are detected.
base::Result<std::shared_ptr<Comm>> introduce(const std::shared_ptr<Router>& router, Comm& comm,
                                              std::uint64_t label, const Patience& patience = {});

/// Collective over the ranks of this rank's node in `comm`, which it keeps: these ranks alone. They
/// exchange no messages, and never cause an error of `comm`. Null on all of them as share() is.
std::shared_ptr<Comm> make_local(const std::shared_ptr<Comm>& comm, const Patience& patience = {});

}  // namespace pario::comm
