// The member threads, and self as a special case. Shared memory is the heap. A message is copied
// from the sender's buffer to the receiver's when both are posted, so that an early access to a
// buffer is a race that TSan reports.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "core/comm/node_comm.hpp"
#include "core/comm/self.hpp"

namespace pario::comm {
namespace {

constexpr std::size_t kPage = 4096;

class HeapMemory : public SharedMemory {
 public:
  explicit HeapMemory(std::size_t size)
      : size_(size),
        data_(static_cast<std::byte*>(std::aligned_alloc(kPage, base::round_up(size + 1, kPage)))) {
    if (data_) std::memset(data_, 0, size);
  }
  HeapMemory(const HeapMemory&) = delete;
  HeapMemory& operator=(const HeapMemory&) = delete;
  ~HeapMemory() override { std::free(data_); }
  std::byte* data() const override { return data_; }
  std::size_t size() const override { return size_; }

 private:
  std::size_t size_;
  std::byte* data_;
};

std::shared_ptr<SharedMemory> make_heap_memory(std::size_t size) {
  auto memory = std::make_shared<HeapMemory>(size);
  return memory->data() ? memory : nullptr;
}

/// One side of a message.
struct Post {
  std::byte* data;
  std::size_t size;
  std::atomic<bool> done{false};
};
using PostPtr = std::shared_ptr<Post>;

/// Pairs the two sides of messages to one rank, and keeps its notes.
class Mailbox {
 public:
  using Key = std::tuple<int, int, int>;  // communicator, sender, tag

  void add_note(int communicator, int tag, std::span<const std::byte> note) {
    const std::lock_guard lock(mutex_);
    notes_[{communicator, tag}].emplace_back(note.begin(), note.end());
  }
  bool receive_note(int communicator, int tag, std::span<std::byte> note) {
    const std::lock_guard lock(mutex_);
    auto& notes = notes_[{communicator, tag}];
    if (notes.empty()) return false;
    std::ranges::copy(notes.front(), note.begin());
    notes.pop_front();
    return true;
  }

  void send(const Key& key, const PostPtr& post) {
    match(key, post, &Queues::sends, &Queues::receives);
  }
  void receive(const Key& key, const PostPtr& post) {
    match(key, post, &Queues::receives, &Queues::sends);
  }
  /// Cancels a receive or a send: the Mailbox no longer uses the buffer of `post`.
  void withdraw(const Key& key, const PostPtr& post) {
    const std::lock_guard lock(mutex_);
    Queues& queues = queues_[key];
    std::erase(queues.sends, post);
    std::erase(queues.receives, post);
  }

 private:
  struct Queues {
    std::deque<PostPtr> sends, receives;
  };
  using Side = std::deque<PostPtr> Queues::*;

  void match(const Key& key, const PostPtr& post, Side mine, Side other) {
    const std::lock_guard lock(mutex_);
    Queues& queues = queues_[key];
    if ((queues.*other).empty()) {
      (queues.*mine).push_back(post);
      return;
    }
    const PostPtr partner = (queues.*other).front();
    (queues.*other).pop_front();
    const bool sending = mine == &Queues::sends;
    Post &from = sending ? *post : *partner, &to = sending ? *partner : *post;
    if (from.size != 0) std::memcpy(to.data, from.data, std::min(from.size, to.size));
    from.done.store(true, std::memory_order_release);
    to.done.store(true, std::memory_order_release);
  }

  std::mutex mutex_;
  std::map<Key, Queues> queues_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> notes_;  // communicator, tag
};

/// The common state of the ranks of one run.
struct World {
  explicit World(std::span<const int> node_of)
      : topology(make_topology(node_of)), mailboxes(node_of.size()), ended(node_of.size()) {}

  Topology topology;
  std::vector<Mailbox> mailboxes;        // by receiver
  std::vector<std::atomic<bool>> ended;  // by rank
  std::atomic<int> communicators{1};
};

class ThreadPending : public Pending {
 public:
  ThreadPending(std::shared_ptr<World> world, int receiver, Mailbox::Key key, PostPtr post)
      : world_(std::move(world)),
        receiver_(static_cast<std::size_t>(receiver)),
        key_(std::move(key)),
        post_(std::move(post)) {}
  ThreadPending(const ThreadPending&) = delete;
  ThreadPending& operator=(const ThreadPending&) = delete;
  ~ThreadPending() override {
    if (!ThreadPending::test()) world_->mailboxes[receiver_].withdraw(key_, post_);
  }
  bool test() override { return post_->done.load(std::memory_order_acquire); }

 private:
  std::shared_ptr<World> world_;
  std::size_t receiver_;
  Mailbox::Key key_;
  PostPtr post_;
};

class ThreadComm : public NodeComm {
 public:
  ThreadComm(std::shared_ptr<World> world, int rank, int number,
             std::shared_ptr<SharedMemory> memory, int world_rank_of_0)
      : NodeComm(rank, world->topology, std::move(memory)),
        world_(std::move(world)),
        number_(number),
        world_rank_of_0_(world_rank_of_0) {}

  bool thread_safe() const override { return true; }
  bool alive(int other) const override {
    return !world_->ended[static_cast<std::size_t>(other)].load(std::memory_order_acquire);
  }
  int world_rank(int other) const override { return world_rank_of_0_ + other; }

  std::shared_ptr<SharedMemory> share(std::size_t size, const Patience& patience) override {
    std::shared_ptr<SharedMemory> memory;
    return share_error(share_heap(size, memory, patience_for(patience))) ? memory : nullptr;
  }

  std::shared_ptr<Comm> duplicate(const Patience& patience) override {
    int number = rank() == 0 ? world_->communicators.fetch_add(1) : 0;
    if (!broadcast(&number, sizeof number, 0, patience)) return nullptr;
    auto memory = share(Board::bytes(local_size()), patience);
    return memory ? std::make_shared<ThreadComm>(world_, rank(), number, memory, world_rank_of_0_)
                  : nullptr;
  }

  std::unique_ptr<Pending> send(int to, int tag, std::span<const std::byte> data) override {
    const auto post = std::make_shared<Post>(const_cast<std::byte*>(data.data()),
                                             data.size());  // the buffer of a sender is only read
    const Mailbox::Key key{number_, rank(), tag};
    world_->mailboxes[static_cast<std::size_t>(to)].send(key, post);
    return std::make_unique<ThreadPending>(world_, to, key, post);
  }

  std::unique_ptr<Pending> receive(int from, int tag, std::span<std::byte> data) override {
    const auto post = std::make_shared<Post>(data.data(), data.size());
    const Mailbox::Key key{number_, from, tag};
    world_->mailboxes[static_cast<std::size_t>(rank())].receive(key, post);
    return std::make_unique<ThreadPending>(world_, rank(), key, post);
  }

 protected:
  void send_note(int to, int tag, std::span<const std::byte> note) override {
    world_->mailboxes[static_cast<std::size_t>(to)].add_note(number_, tag, note);
  }
  bool receive_note(int tag, std::span<std::byte> note) override {
    return world_->mailboxes[static_cast<std::size_t>(rank())].receive_note(number_, tag, note);
  }

 private:
  base::Status share_heap(std::size_t size, std::shared_ptr<SharedMemory>& memory,
                          const Patience& patience) {
    if (leader() == rank()) memory = make_heap_memory(size);
    struct {
      std::shared_ptr<SharedMemory>* memory;
    } source{&memory};  // of the leader, which lives until all have copied it
    if (auto status = board().broadcast(&source, sizeof source, 0, patience); !status)
      return status;
    if (source.memory != &memory) memory = *source.memory;
    return board().barrier(patience);
  }

  std::shared_ptr<World> world_;
  int number_;
  int world_rank_of_0_;
};

}  // namespace

std::shared_ptr<Comm> make_self(int world_rank) {
  const int nodes[] = {0};
  return std::make_shared<ThreadComm>(std::make_shared<World>(nodes), 0, 0,
                                      make_heap_memory(Board::bytes(1)), world_rank);
}

std::shared_ptr<Comm> make_self() { return make_self(0); }

void run_as_threads(std::span<const int> node_of,
                    const std::function<void(std::shared_ptr<Comm>)>& body) {
  const auto world = std::make_shared<World>(node_of);
  std::vector<std::shared_ptr<SharedMemory>> memory;  // by node
  for (const auto& ranks : world->topology.ranks_of)
    memory.push_back(make_heap_memory(Board::bytes(static_cast<int>(ranks.size()))));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < node_of.size(); ++rank) {
    const auto node = static_cast<std::size_t>(world->topology.node_of[rank]);
    threads.emplace_back([&, rank, node] {
      body(std::make_shared<ThreadComm>(world, static_cast<int>(rank), 0, memory[node], 0));
      world->ended[rank].store(true, std::memory_order_release);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace pario::comm
