#include "core/comm/leaders.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/comm/attendance.hpp"

namespace pario::comm {
namespace {

/// The blocks of all nodes in one buffer, in the order of nodes beginning with `first`.
class NodeBlocks {
 public:
  NodeBlocks(const Topology& topology, int first, std::size_t each)
      : topology_(topology), first_(first), each_(each), begin_{0} {
    for (int i = 0; i < topology.nodes(); ++i)
      begin_.push_back(begin_.back() + ranks(i).size() * each);
    bytes_.resize(begin_.back());
  }
  /// Blocks [begin, end) as bytes.
  std::span<std::byte> blocks(int begin, int end) {
    const std::size_t from = begin_[static_cast<std::size_t>(begin)];
    return std::span(bytes_).subspan(from, begin_[static_cast<std::size_t>(end)] - from);
  }
  void pack(int block, const std::byte* all) {
    std::byte* to = blocks(block, block + 1).data();
    for (const int rank : ranks(block))
      to = std::copy_n(all + static_cast<std::size_t>(rank) * each_, each_, to);
  }
  void unpack(int block, std::byte* all) {
    const std::byte* from = blocks(block, block + 1).data();
    for (const int rank : ranks(block)) {
      std::copy_n(from, each_, all + static_cast<std::size_t>(rank) * each_);
      from += each_;
    }
  }

 private:
  const std::vector<int>& ranks(int block) const {
    return topology_.ranks_of[static_cast<std::size_t>((first_ + block) % topology_.nodes())];
  }

  const Topology& topology_;
  int first_;
  std::size_t each_;
  std::vector<std::size_t> begin_;
  std::vector<std::byte> bytes_;
};

base::Status exchange(Comm& comm, int to, std::span<const std::byte> out, int from,
                      std::span<std::byte> in, const Patience& patience) {
  std::unique_ptr<Pending> messages[2];
  messages[0] = comm.receive(from, kCollectiveTag, in);
  messages[1] = comm.send(to, kCollectiveTag, out);
  return wait_all(messages, patience);
}

}  // namespace

int leader_of(const Topology& topology, int node) {
  const int nodes = topology.nodes();
  return topology.ranks_of[static_cast<std::size_t>((node % nodes + nodes) % nodes)].front();
}

// Gathers by doubling: each node sends its blocks to the node `have` before it, and receives as
// many from the node `have` after it.
base::Status gather_among_leaders(Comm& comm, std::byte* all, std::size_t each,
                                  const Patience& patience) {
  const int nodes = comm.topology().nodes();
  NodeBlocks packed(comm.topology(), comm.node(), each);
  packed.pack(0, all);
  for (int have = 1; have < nodes;) {
    const int more = std::min(have, nodes - have);
    const auto in = packed.blocks(have, have + more);
    if (auto status =
            exchange(comm, leader_of(comm.topology(), comm.node() - have), packed.blocks(0, more),
                     leader_of(comm.topology(), comm.node() + have), in, patience);
        !status)
      return status;
    have += more;
  }
  for (int block = 1; block < nodes; ++block) packed.unpack(block, all);
  return {};
}

// A binomial tree with the root's node on top.
base::Status broadcast_among_leaders(Comm& comm, std::span<std::byte> data, int root_node,
                                     const Patience& patience) {
  const int nodes = comm.topology().nodes(), place = (comm.node() - root_node + nodes) % nodes;
  int step = 1;
  while (step < nodes && (place & step) == 0) step *= 2;
  if (place != 0) {
    std::unique_ptr<Pending> message[] = {
        comm.receive(leader_of(comm.topology(), comm.node() - step), kCollectiveTag, data)};
    if (auto status = wait_all(message, patience); !status) return status;
  }
  std::vector<std::unique_ptr<Pending>> messages;
  for (step /= 2; step > 0; step /= 2) {
    if (place + step < nodes)
      messages.push_back(
          comm.send(leader_of(comm.topology(), comm.node() + step), kCollectiveTag, data));
  }
  return wait_all(messages, patience);
}

base::Status barrier_among_leaders(Comm& comm, const Patience& patience) {
  for (int distance = 1; distance < comm.topology().nodes(); distance *= 2) {
    if (auto status = exchange(comm, leader_of(comm.topology(), comm.node() + distance), {},
                               leader_of(comm.topology(), comm.node() - distance), {}, patience);
        !status)
      return status;
  }
  return {};
}

}  // namespace pario::comm
