#include "core/comm/node_comm.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <unordered_map>

#include "core/comm/leaders.hpp"

namespace pario::comm {
namespace {

constexpr std::size_t kMostListed = 16;

int index_of(std::span<const int> ranks, int rank) {
  return static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

int local_rank_in(const Topology& topology, int rank) {
  return index_of(
      topology.ranks_of[static_cast<std::size_t>(topology.node_of[static_cast<std::size_t>(rank)])],
      rank);
}

std::size_t ranks_of_node(const Topology& topology, int rank) {
  return topology
      .ranks_of[static_cast<std::size_t>(topology.node_of[static_cast<std::size_t>(rank)])]
      .size();
}

}  // namespace

int Comm::local_rank() const { return index_of(node_ranks(), rank()); }

std::string format_numbers(std::span<const int> numbers) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t shown = 0; at < numbers.size() && shown < kMostListed; ++shown) {
    std::size_t run = 1;  // consecutive numbers
    while (at + run < numbers.size() && numbers[at + run] == numbers[at] + static_cast<int>(run))
      ++run;
    if (run < 3) run = 1;
    if (at > 0) out += at + run == numbers.size() ? " and " : ", ";
    out += std::to_string(numbers[at]);
    if (run > 1) out += "-" + std::to_string(numbers[at + run - 1]);
    at += run;
  }
  if (at < numbers.size()) out += " and " + std::to_string(numbers.size() - at) + " more";
  return out;
}

std::string format_ranks(std::span<const int> ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + format_numbers(ranks);
}

Topology make_topology(std::span<const int> labels) {
  Topology topology;
  std::unordered_map<int, int> numbers;
  for (std::size_t rank = 0; rank < labels.size(); ++rank) {
    const auto [entry, added] = numbers.try_emplace(labels[rank], topology.nodes());
    if (added) topology.ranks_of.emplace_back();
    topology.node_of.push_back(entry->second);
    topology.ranks_of[static_cast<std::size_t>(entry->second)].push_back(static_cast<int>(rank));
  }
  return topology;
}

NodeComm::NodeComm(int rank, Topology topology, std::shared_ptr<SharedMemory> memory)
    : rank_(rank),
      topology_(std::move(topology)),
      board_(std::move(memory), local_rank_in(topology_, rank),
             static_cast<int>(ranks_of_node(topology_, rank))),
      attendance_(board_, topology_, rank) {}

Patience NodeComm::patience_for(const Patience& given) {
  Patience patience = given;
  if (!patience.progress) patience.progress = [this] { progress(); };
  if (!patience.look) patience.look = [this](std::uint64_t) { return check(kSilence); };
  return patience;
}

base::Status NodeComm::failure() {
  base::Status status = board_.failure();
  if (!status && topology_.nodes() > 1 && may_send_notes() && board_.claim_error_forward())
    send_error(status.error());
  return status;
}

void NodeComm::send_error(const base::Error& error) {
  const ErrorRecord record = to_record(error);
  for (int other = 0; other < topology_.nodes(); ++other)
    if (other != node()) send_note(leader_of(topology_, other), kErrorTag, bytes_of(record));
}

// An error is sent to all leaders at once, so that a leader does not forward it.
void NodeComm::receive_error() {
  ErrorRecord record;
  if (!receive_note(kErrorTag, bytes_of(record)) || !board_.fail(from_record(record))) return;
  static_cast<void>(board_.claim_error_forward());
}

base::Status NodeComm::known_failure() {
  if (!has_failed() && topology_.nodes() > 1 && is_leader() && may_send_notes()) receive_error();
  return failure();
}

void NodeComm::keep_alive(std::uint64_t interval_ns) {
  board_.note_keep_alive(base::monotonic_ns());
  if (topology_.nodes() == 1 || !may_send_notes()) return;
  forward_keep_alive({interval_ns, node()});
  receive_keep_alives();  // keeps the queue short while this rank works
}

// Forwards keep-alives through the leader of node 0: in an interval each node sends it one, and it
// sends one to each other node.
void NodeComm::forward_keep_alive(const KeepAlive& note) {
  if (!board_.claim_forward(base::monotonic_ns(), note.interval_ns)) return;
  if (node() != 0) return send_note(leader_of(topology_, 0), kKeepAliveTag, bytes_of(note));
  for (int other = 1; other < topology_.nodes(); ++other)
    if (other != note.node) send_note(leader_of(topology_, other), kKeepAliveTag, bytes_of(note));
}

void NodeComm::receive_keep_alives() {
  KeepAlive note;
  while (is_leader() && receive_note(kKeepAliveTag, bytes_of(note))) {
    board_.note_keep_alive(base::monotonic_ns());
    if (node() == 0) forward_keep_alive(note);
  }
}

std::string NodeComm::names(std::span<const int> ranks) const {
  std::vector<int> in_program;
  std::ranges::transform(ranks, std::back_inserter(in_program),
                         [this](int rank) { return world_rank(rank); });
  return format_ranks(ranks) + " (" + format_numbers(in_program) + " of the program)";
}

std::string NodeComm::remark(int rank, const std::string& last_call) const {
  std::string text = current_call(rank);
  if (!last_call.empty())
    text += (text.empty() ? "" : ", ") + ("its last call on this file was " + last_call);
  return text.empty() ? text : "rank " + std::to_string(world_rank(rank)) + ": " + text;
}

base::Status NodeComm::check(std::uint64_t) {
  if (base::Status known = known_failure(); !known) return known;
  if (topology_.nodes() > 1 && may_send_notes()) {
    attendance_.read_notes(*this);
    receive_keep_alives();
  }
  for (const int other : node_ranks()) {
    if (alive(other)) continue;
    return share_error(base::Error{.number = ESRCH, .detail = names({&other, 1}) + " has died"});
  }
  return {};
}

base::Status NodeComm::share_error(base::Status status) {
  if (status) return status;
  if (!has_failed()) fail(status.error());
  base::Status first = failure();
  return first ? status : first;  // the first rank to fail may have died before it shared its error
}

base::Status NodeComm::allgather(const void* mine, std::size_t each, void* all,
                                 const Patience& patience) {
  return share_error(gather_over_nodes(mine, each, all, patience_for(patience)));
}

base::Status NodeComm::broadcast(void* data, std::size_t size, int root, const Patience& patience) {
  return share_error(broadcast_over_nodes(data, size, root, patience_for(patience)));
}

base::Status NodeComm::barrier(const Patience& patience) {
  return share_error(barrier_over_nodes(patience_for(patience)));
}

base::Status NodeComm::gather_over_nodes(const void* mine, std::size_t each, void* all,
                                         const Patience& patience) {
  auto* bytes = static_cast<std::byte*>(all);
  std::vector<std::byte*> places;
  for (const int other : node_ranks())
    places.push_back(bytes + static_cast<std::size_t>(other) * each);
  if (auto status = board_.allgather(mine, each, places, patience);
      !status || topology_.nodes() == 1)
    return status;
  if (is_leader()) {
    if (auto status = gather_among_leaders(*this, bytes, each, patience); !status) return status;
  }
  return board_.broadcast(all, each * static_cast<std::size_t>(size()), 0, patience);
}

base::Status NodeComm::broadcast_over_nodes(void* data, std::size_t size, int root,
                                            const Patience& patience) {
  const int root_node = topology_.node_of[static_cast<std::size_t>(root)];
  if (node() == root_node) {
    if (auto status = board_.broadcast(data, size, local_rank_in(topology_, root), patience);
        !status)
      return status;
  }
  if (is_leader()) {
    if (auto status = broadcast_among_leaders(*this, {static_cast<std::byte*>(data), size},
                                              root_node, patience);
        !status)
      return status;
  }
  return node() == root_node ? base::Status() : board_.broadcast(data, size, 0, patience);
}

base::Status NodeComm::barrier_over_nodes(const Patience& patience) {
  if (auto status = board_.barrier(patience); !status || topology_.nodes() == 1) return status;
  if (is_leader()) {
    if (auto status = barrier_among_leaders(*this, patience); !status) return status;
  }
  return board_.barrier(patience);
}

}  // namespace pario::comm
