// Collective operations among the leaders, the first rank of each node, by messages between them.
// The leaders call them together; the errors are those of the messages.
#pragma once

#include <cstddef>
#include <span>

#include "core/comm/comm.hpp"

namespace pario::comm {

/// The leader of a node. Nodes are counted in a circle: -1 is the last one.
int leader_of(const Topology& topology, int node);

/// `all`: `each` bytes of every rank, in rank order; the caller has filled in its node's bytes.
base::Status gather_among_leaders(Comm& comm, std::byte* all, std::size_t each,
                                  const Patience& patience);
base::Status broadcast_among_leaders(Comm& comm, std::span<std::byte> data, int root_node,
                                     const Patience& patience);
base::Status barrier_among_leaders(Comm& comm, const Patience& patience);

}  // namespace pario::comm
