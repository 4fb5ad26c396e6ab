// A Comm on a Router.
#include "core/comm/callback.hpp"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <unordered_map>

#include "core/comm/memory.hpp"
#include "core/comm/process_comm.hpp"

namespace pario::comm {
namespace {

using Address = Router::Address;

class SentMessage : public Pending {
 public:
  explicit SentMessage(const base::Status& status) : error_(status ? 0 : status.error().number) {}
  bool test() override { return true; }
  int error() const override { return error_; }

 private:
  int error_;
};

class PostedReceive : public Pending {
 public:
  PostedReceive(std::shared_ptr<Router> router, Address address, int from,
                std::span<std::byte> data)
      : router_(std::move(router)),
        address_(address),
        from_(from),
        post_(std::make_shared<Router::Post>(data)) {
    router_->post(address_, from_, post_);
  }
  PostedReceive(const PostedReceive&) = delete;
  PostedReceive& operator=(const PostedReceive&) = delete;
  ~PostedReceive() override { router_->withdraw(address_, from_, post_); }

  bool test() override {
    if (router_->is_done(*post_)) return true;
    const base::Status status = router_->poll();
    if (!status) error_ = status.error().number;
    return !status || router_->is_done(*post_);
  }
  int error() const override { return error_; }
  void pause(std::uint64_t waited_ns, std::uint64_t longest_ns) override {
    router_->pause(waited_ns, longest_ns);
  }

 private:
  std::shared_ptr<Router> router_;
  Address address_;
  int from_, error_ = 0;
  std::shared_ptr<Router::Post> post_;
};

class CallbackComm : public ProcessComm {
 public:
  CallbackComm(std::shared_ptr<Router> router, std::uint32_t number, Topology nodes,
               std::shared_ptr<SharedMemory> memory, Members members)
      : ProcessComm(router->rank(), std::move(nodes), std::move(memory), std::move(members)),
        router_(std::move(router)),
        number_(number) {}

  bool thread_safe() const override { return true; }
  void progress() const override { static_cast<void>(router_->poll()); }

  std::shared_ptr<Comm> duplicate(const Patience& given) override {
    std::uint32_t number = rank() == 0 ? router_->take_number() : 0;
    if (!broadcast(&number, sizeof number, 0, given)) return nullptr;
    auto memory = share(Board::bytes(local_size()), given);
    if (!memory) return nullptr;
    auto made =
        std::make_shared<CallbackComm>(router_, number, topology(), std::move(memory), members());
    made->watch_hosts_of(*this);
    return made;
  }

  std::unique_ptr<Pending> send(int to, int tag, std::span<const std::byte> data) override {
    return std::make_unique<SentMessage>(router_->send(to, {number_, tag}, data));
  }
  std::unique_ptr<Pending> receive(int from, int tag, std::span<std::byte> data) override {
    return std::make_unique<PostedReceive>(router_, Address{number_, tag}, from, data);
  }

 protected:
  void send_note(int to, int tag, std::span<const std::byte> note) override {
    static_cast<void>(router_->send(to, {number_, tag}, note));
  }
  bool receive_note(int tag, std::span<std::byte> note) override {
    static_cast<void>(router_->poll());
    const auto message = router_->remove_message({number_, tag}, -1);
    if (!message || message->data.size() != note.size()) return false;
    std::ranges::copy(message->data, note.begin());
    return true;
  }

 private:
  std::shared_ptr<Router> router_;
  std::uint32_t number_;
};

/// The ranks of one node of a Comm.
class LocalComm : public NodeComm {
 public:
  LocalComm(std::shared_ptr<Comm> all, std::shared_ptr<SharedMemory> memory)
      : NodeComm(all->local_rank(), one_node(all->local_size()), std::move(memory)),
        all_(std::move(all)) {}

  bool thread_safe() const override { return true; }
  void progress() const override { all_->progress(); }
  int world_rank(int rank) const override { return all_->world_rank(number(rank)); }
  bool alive(int rank) const override { return all_->alive(number(rank)); }
  std::shared_ptr<SharedMemory> share(std::size_t size, const Patience& given) override {
    return all_->share(size, patience_for(given));
  }
  std::shared_ptr<Comm> duplicate(const Patience& given) override {
    auto memory = share(Board::bytes(local_size()), given);
    return memory ? std::make_shared<LocalComm>(all_, std::move(memory)) : nullptr;
  }
  std::unique_ptr<Pending> send(int /*to*/, int /*tag*/,
                                std::span<const std::byte> /*data*/) override {
    return std::make_unique<SentMessage>(base::Error{.number = ENOTSUP});
  }
  std::unique_ptr<Pending> receive(int /*from*/, int /*tag*/,
                                   std::span<std::byte> /*data*/) override {
    return std::make_unique<SentMessage>(base::Error{.number = ENOTSUP});
  }

 protected:
  void send_note(int /*to*/, int /*tag*/, std::span<const std::byte> /*note*/) override {}
  bool receive_note(int /*tag*/, std::span<std::byte> /*note*/) override { return false; }

 private:
  static Topology one_node(int size) {
    return make_topology(std::vector<int>(static_cast<std::size_t>(size), 0));
  }
  int number(int rank) const { return all_->node_ranks()[static_cast<std::size_t>(rank)]; }

  std::shared_ptr<Comm> all_;
};

Topology nodes_of_one(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return make_topology(ranks);
}

/// The facts that each rank sends to the others.
struct Introduced {
  Member member = {};
  std::uint64_t label = 0;
};

Topology topology_of(std::span<const Introduced> all) {
  std::unordered_map<std::uint64_t, int> numbers;
  std::vector<int> nodes;
  for (const Introduced& one : all)
    nodes.push_back(numbers.try_emplace(one.label, static_cast<int>(numbers.size())).first->second);
  return make_topology(nodes);
}

/// Collective over `comm`: the Board of this rank's node.
std::shared_ptr<SharedMemory> share_board(Comm& comm, const Topology& nodes,
                                          const Patience& patience) {
  const auto rank = static_cast<std::size_t>(comm.rank());
  const auto& node = nodes.ranks_of[static_cast<std::size_t>(nodes.node_of[rank])];
  const auto publish = [&](Ticket& ticket) {
    std::vector<Ticket> all(nodes.node_of.size());
    if (!comm.allgather(&ticket, sizeof ticket, all.data(), patience)) return false;
    ticket = all[static_cast<std::size_t>(node.front())];
    return true;
  };
  const auto all_agree = [&](bool mine) {
    std::vector<char> all(nodes.node_of.size());
    const char own = mine;
    return comm.allgather(&own, 1, all.data(), patience).ok() &&
           std::ranges::find(all, 0) == all.end();
  };
  return share_memory(Board::bytes(static_cast<int>(node.size())), node.front() == comm.rank(),
                      {publish, all_agree});
}

}  // namespace

std::shared_ptr<Comm> make_callback(std::shared_ptr<Router> router) {
  const int size = router->size();
  auto members = std::make_shared<std::vector<Member>>(static_cast<std::size_t>(size));
  return std::make_shared<CallbackComm>(std::move(router), 0, nodes_of_one(size),
                                        private_memory(Board::bytes(1)), std::move(members));
}

base::Result<std::shared_ptr<Comm>> introduce(const std::shared_ptr<Router>& router, Comm& comm,
                                              std::uint64_t label, const Patience& patience) {
  const Introduced mine{{.process = Process::self(), .world_rank = comm.rank()}, label};
  std::vector<Introduced> all(static_cast<std::size_t>(comm.size()));
  if (auto status = comm.allgather(&mine, sizeof mine, all.data(), patience); !status)
    return status.error();
  std::uint32_t number = comm.rank() == 0 ? router->take_number() : 0;
  if (auto status = comm.broadcast(&number, sizeof number, 0, patience); !status)
    return status.error();
  Topology nodes = topology_of(all);
  auto memory = share_board(comm, nodes, patience);
  if (!memory && !comm.has_failed()) {
    nodes = nodes_of_one(comm.size());
    memory = private_memory(Board::bytes(1));
  }
  if (!memory)
    return comm.has_failed() ? comm.failure().error()
                             : base::Error{.number = ENOMEM, .operation = "introduce"};
  auto members = std::make_shared<std::vector<Member>>();
  for (const Introduced& one : all) members->push_back(one.member);
  auto made = std::make_shared<CallbackComm>(router, number, std::move(nodes), std::move(memory),
                                             std::move(members));
  made->connect_hosts();
  return std::shared_ptr<Comm>(std::move(made));
}

std::shared_ptr<Comm> make_local(const std::shared_ptr<Comm>& comm, const Patience& patience) {
  auto memory = comm->share(Board::bytes(comm->local_size()), patience);
  return memory ? std::make_shared<LocalComm>(comm, std::move(memory)) : nullptr;
}

}  // namespace pario::comm
