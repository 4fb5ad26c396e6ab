#include "core/comm/process_comm.hpp"

#include <algorithm>
#include <cerrno>

#include "core/comm/memory.hpp"

namespace pario::comm {

int ProcessComm::world_rank(int other) const {
  const int known = member(other).world_rank;
  return known < 0 ? other : known;
}

bool ProcessComm::alive(int other) const {
  return topology().node_of[static_cast<std::size_t>(other)] != node() ||
         member(other).process.alive();
}

std::string ProcessComm::current_call(int other) const {
  const Process& process = member(other).process;
  if (call_lookup_ == nullptr || !process.is_numbered_here()) return {};
  return call_lookup_(process.pid, member(other).world_rank);
}

base::Status ProcessComm::check(std::uint64_t silence_s) {
  base::Status lost = lost_host(silence_s);
  return lost ? NodeComm::check(silence_s) : share_error(lost);
}

std::shared_ptr<SharedMemory> ProcessComm::share(std::size_t size, const Patience& given) {
  const Patience patience = patience_for(given);
  const auto publish = [&](Ticket& ticket) {
    return share_error(board().broadcast(&ticket, sizeof ticket, 0, patience)).ok();
  };
  return share_memory(size, leader() == rank(),
                      {publish, [&](bool mine) { return all_agree(mine, patience); }});
}

bool ProcessComm::all_agree(bool mine, const Patience& patience) {
  std::vector<std::byte> all(static_cast<std::size_t>(local_size()));
  std::vector<std::byte*> places(all.size());
  std::transform(all.begin(), all.end(), places.begin(), [](std::byte& byte) { return &byte; });
  const auto own = static_cast<std::byte>(mine);
  return share_error(board().allgather(&own, 1, places, patience)).ok() &&
         std::find(all.begin(), all.end(), std::byte{0}) == all.end();
}

void ProcessComm::connect_hosts() {
  if (topology().nodes() == 1) return;
  auto lifelines = rank() == leader() ? std::make_unique<Lifelines>() : nullptr;
  const ListenAddress mine = lifelines ? lifelines->address() : ListenAddress();
  std::vector<ListenAddress> listeners(static_cast<std::size_t>(size())), of_leaders;
  if (!allgather(&mine, sizeof mine, listeners.data(), {}) || !lifelines) return;
  for (const auto& ranks : topology().ranks_of)
    of_leaders.push_back(listeners[static_cast<std::size_t>(ranks.front())]);
  lifelines->connect(static_cast<std::size_t>(node()), std::move(of_leaders));
  lifelines_ = std::move(lifelines);
}

base::Status ProcessComm::lost_host(std::uint64_t silence_s) {
  const auto loss = lifelines_ ? lifelines_->find_loss(silence_s * 1'000'000'000) : std::nullopt;
  if (!loss) return {};
  const std::vector<int>& ranks = topology().ranks_of[loss->leader];
  std::string detail =
      "the host of " + names(ranks) + " has not answered for " + std::to_string(silence_s) + " s";
  if (!loss->silent)
    detail = names({&ranks.front(), 1}) + " has died" +
             (ranks.size() > 1 ? ", perhaps with all of its host: " + names(ranks) : "");
  return base::Error{.number = ESRCH, .detail = std::move(detail)};
}

}  // namespace pario::comm
