#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "instruments/model/model.hpp"

namespace pario::model {

Turns take_turns(const Machine& machine, plan::Direction direction,
                 std::span<const std::vector<Request>> clients) {
  using Arrival = std::pair<double, std::size_t>;  // time and client
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  for (std::size_t client = 0; client < clients.size(); ++client)
    if (!clients[client].empty()) arrivals.push({0, client});
  const double rate = direction == plan::Direction::write ? machine.write_rate : machine.read_rate;
  std::vector<double> free_at(std::max(machine.targets, 1u));
  std::vector<std::size_t> next(clients.size());
  std::map<std::uint32_t, std::size_t> holders;
  Turns turns;
  while (!arrivals.empty()) {
    const auto [now, client] = arrivals.top();
    arrivals.pop();
    const Request& request = clients[client][next[client]++];
    const auto [holder, first] = holders.try_emplace(request.unit, client);
    const bool taken = !first && std::exchange(holder->second, client) != client;
    turns.handovers += taken ? 1 : 0;
    double& target = free_at[request.unit % free_at.size()];
    target = std::max(target, now) + machine.request_seconds +
             (taken ? machine.handover_seconds : 0) +
             (rate > 0 ? static_cast<double>(request.bytes) / rate : 0);
    const double answered = target + machine.round_trip;
    turns.seconds = std::max(turns.seconds, answered);
    if (next[client] < clients[client].size()) arrivals.push({answered, client});
  }
  return turns;
}

}  // namespace pario::model
