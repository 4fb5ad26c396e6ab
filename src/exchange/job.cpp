#include "exchange/job.hpp"

#include <cstring>

namespace pario::exchange {

Job::Job(const Setting& setting)
    : setting_(setting),
      rank_(setting.comm.rank()),
      node_(setting.comm.node()),
      local_(setting.comm.local_rank()),
      locals_(setting.comm.local_size()),
      steps_(setting.plan, setting.spans, setting.comm.topology(), node_, setting.uses),
      outbox_(setting.buffers) {}

void Job::ring_speaker(const Step& step) const {
  const std::vector<int>& ranks = setting_.comm.node_ranks();
  const auto place = std::lower_bound(ranks.begin(), ranks.end(), speaker(step.index)) - ranks.begin();
  if (place != local_) setting_.board.ring(static_cast<int>(place));
}

std::vector<pattern::Coverage> Job::areas(std::uint32_t slot_number, base::Extent stretch, std::uint64_t index) const {
  std::vector<pattern::Coverage> found;
  const std::vector<int>& ranks = setting_.comm.node_ranks();
  const int receiver = setting_.comm.topology().nodes() == 1 ? -1 : speaker(index);
  for (int local = 0; local < locals_; ++local) {
    const int rank = ranks[static_cast<std::size_t>(local)];
    if (rank == receiver || steps_.touches(rank, stretch)) found.push_back(area(slot_number, local));
  }
  return found;
}

void Job::clear(std::span<const pattern::Coverage> coverages, base::Extent stretch) const {
  const std::uint64_t words = pattern::coverage_words(stretch.length(), setting_.granule);
  for (const pattern::Coverage& coverage : coverages) std::memset(coverage.words, 0, words * sizeof(std::uint64_t));
}

void Job::free_slot(std::uint32_t slot_number) const {
  Slot& slot = setting_.board.slot(slot_number);
  slot.arrived.store(0);
  slot.marked.store(0);
  const std::uint32_t state = slot.state.load();
  slot.state.store(state - phase_of(state) + kPhases);
  setting_.board.ring_waiting(slot_number);
}

void Job::send(int to, int tag, Buffer message) {
  ++setting_.tally.messages;
  setting_.tally.message_bytes += message.size;
  auto pending = setting_.comm.send(to, tag, message.bytes());
  outbox_.put(std::move(pending), std::move(message));
}

Letter Job::receive(int from, int tag, std::size_t size) {
  Buffer buffer = setting_.buffers.take(size);
  auto pending = setting_.comm.receive(from, tag, buffer.bytes());
  return {std::move(pending), std::move(buffer)};
}

void Job::keep(base::Status status) {
  if (outcome_.ok() && !status.ok()) outcome_ = std::move(status);
}

}  // namespace pario::exchange
