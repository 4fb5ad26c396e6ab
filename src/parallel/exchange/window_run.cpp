#include "parallel/exchange/window_run.hpp"

#include <cstring>

namespace pario::exchange {

WindowRun::WindowRun(const RunContext& setting)
    : context_(setting),
      rank_(setting.comm.rank()),
      node_(setting.comm.node()),
      local_(setting.comm.local_rank()),
      locals_(setting.comm.local_size()),
      steps_(setting.plan, setting.spans, setting.comm.topology(), node_, setting.uses),
      send_queue_(setting.buffers) {}

void WindowRun::wake_message_rank(const Step& step) const {
  const std::vector<int>& ranks = context_.comm.node_ranks();
  const auto place =
      std::lower_bound(ranks.begin(), ranks.end(), message_rank(step.index)) - ranks.begin();
  if (place != local_) context_.ring.wake(static_cast<int>(place));
}

std::vector<pattern::Coverage> WindowRun::find_coverages(std::uint32_t slot_number,
                                                         base::Extent extent,
                                                         std::uint64_t index) const {
  std::vector<pattern::Coverage> found;
  const std::vector<int>& ranks = context_.comm.node_ranks();
  const int receiver = context_.comm.topology().nodes() == 1 ? -1 : message_rank(index);
  for (int local = 0; local < locals_; ++local) {
    const int rank = ranks[static_cast<std::size_t>(local)];
    if (rank == receiver || steps_.touches(rank, extent))
      found.push_back(coverage_of(slot_number, local));
  }
  return found;
}

void WindowRun::clear_coverages(std::span<const pattern::Coverage> coverages,
                                base::Extent extent) const {
  const std::uint64_t words = pattern::coverage_words(extent.length(), context_.granule);
  for (const pattern::Coverage& coverage : coverages)
    std::memset(coverage.words, 0, words * sizeof(std::uint64_t));
}

void WindowRun::free_slot(std::uint32_t slot_number) const {
  Slot& slot = context_.ring.slot(slot_number);
  slot.arrived.store(0);
  slot.marked.store(0);
  const std::uint32_t state = slot.state.load();
  slot.state.store(state - phase_of(state) + kPhases);
  context_.ring.wake_waiting(slot_number);
}

void WindowRun::send(int to, int tag, Buffer message) {
  ++context_.counters.messages;
  context_.counters.message_bytes += message.size;
  auto pending = context_.comm.send(to, tag, message.bytes());
  send_queue_.put(std::move(pending), std::move(message));
}

Message WindowRun::receive(int from, int tag, std::size_t size) {
  Buffer buffer = context_.buffers.get(size);
  auto pending = context_.comm.receive(from, tag, buffer.bytes());
  return {std::move(pending), std::move(buffer)};
}

void WindowRun::keep_error(base::Status status) {
  if (outcome_.ok() && !status.ok()) outcome_ = std::move(status);
}

}  // namespace pario::exchange
