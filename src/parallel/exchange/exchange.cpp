#include "parallel/exchange/exchange.hpp"

#include <algorithm>

#include "parallel/exchange/shared_ring.hpp"
#include "parallel/exchange/window_run.hpp"

namespace pario::exchange {
namespace {

/// The division of a node's memory into the windows of a plan.
struct Geometry {
  std::uint32_t slots;
  std::uint64_t image_size, area_words, images_size, words_size;
};

Geometry arrange(const plan::Plan& plan, std::uint64_t granule, int nodes, int locals,
                 std::uint64_t bytes_limit) {
  Geometry geometry = {};
  const std::uint64_t length = std::min(plan.window, plan.span.length());
  geometry.image_size = base::round_up(length, base::kPage);
  const bool marks =
      plan.direction == plan::Direction::write ? plan.holes != plan::Holes::none : !plan.whole;
  if (marks || nodes > 1)
    geometry.area_words = base::round_up(pattern::coverage_words(length, granule), 8);
  const std::uint64_t words_each =
      geometry.area_words * sizeof(std::uint64_t) * static_cast<std::uint64_t>(locals);
  const std::uint64_t most = std::min<std::uint64_t>(
      {plan.slots, kMaxSlots, plan.windows(), bytes_limit / (geometry.image_size + words_each)});
  geometry.slots = static_cast<std::uint32_t>(std::max<std::uint64_t>(most, 1));
  geometry.images_size = geometry.slots * geometry.image_size;
  geometry.words_size = base::round_up(geometry.slots * words_each, base::kPage);
  return geometry;
}

}  // namespace

struct Exchange::State {
  State(std::shared_ptr<comm::Comm> of, std::uint64_t limit, const comm::Patience& patience)
      : comm(std::move(of)),
        bytes_limit(limit),
        ring(*comm, patience),
        notices(comm->size()),
        uses(kMaxSlots) {}

  base::Status make_room(std::shared_ptr<comm::SharedMemory>& memory, std::uint64_t size,
                         const comm::Patience& patience) const;

  std::shared_ptr<comm::Comm> comm;
  const std::uint64_t bytes_limit;
  SharedRing ring;
  std::vector<Notice> notices;
  std::vector<std::uint32_t> uses;  ///< by slot
  std::shared_ptr<comm::SharedMemory> images, words;
  Buffers buffers;
  StoreChoice writing, reading;
  std::uint64_t bytes_read = 0;
};

// Replaces the memory of the windows. Between two meetings no rank uses the old memory, and all
// ranks of the node agree that it is too small.
base::Status Exchange::State::make_room(std::shared_ptr<comm::SharedMemory>& memory,
                                        std::uint64_t size, const comm::Patience& patience) const {
  if (size == 0 || (memory && memory->size() >= size)) return {};
  memory.reset();
  memory = share(*comm, size, patience);
  return memory ? base::Status() : comm->failure();
}

Exchange::Exchange(std::shared_ptr<comm::Comm> comm, std::uint64_t bytes_limit,
                   const comm::Patience& patience)
    : state_(std::make_unique<State>(std::move(comm), bytes_limit, patience)) {}

Exchange::~Exchange() = default;

base::Result<std::span<const Notice>> Exchange::meet(const Notice& mine,
                                                     const comm::Patience& patience) {
  State& state = *state_;
  if (base::Status status =
          state.comm->allgather(&mine, sizeof mine, state.notices.data(), patience);
      !status.ok())
    return status.error();
  return std::span<const Notice>(state.notices);
}

std::span<const Notice> Exchange::notices() const { return state_->notices; }

base::Status Exchange::run(const plan::Plan& plan, const pattern::Access& access, WindowFile& file,
                           const comm::Patience& patience, Counters& counters) {
  State& state = *state_;
  state.bytes_read = 0;
  if (plan.windows() == 0) return {};
  if (state.comm->has_failed()) return state.comm->failure();
  const std::uint64_t granule = std::max<std::uint64_t>(plan.granule, 1);
  const Geometry geometry = arrange(plan, granule, state.comm->topology().nodes(),
                                    state.comm->local_size(), state.bytes_limit);
  if (base::Status status = state.make_room(state.images, geometry.images_size, patience);
      !status.ok())
    return status;
  if (base::Status status = state.make_room(state.words, geometry.words_size, patience);
      !status.ok())
    return status;
  std::vector<base::Extent> spans;
  spans.reserve(state.notices.size());
  for (const Notice& notice : state.notices)
    spans.push_back(notice.summary.bytes > 0 ? notice.summary.span : base::Extent{});
  const RunContext setting{
      .comm = *state.comm,
      .ring = state.ring,
      .buffers = state.buffers,
      .plan = plan,
      .spans = spans,
      .uses = std::span(state.uses).first(geometry.slots),
      .images = state.images->data(),
      .image_size = geometry.image_size,
      .words = state.words ? reinterpret_cast<std::uint64_t*>(state.words->data()) : nullptr,
      .area_words = geometry.area_words,
      .granule = granule,
      .file = file,
      .patience = patience,
      .counters = counters,
      .store_choice = plan.direction == plan::Direction::write ? state.writing : state.reading};
  return plan.direction == plan::Direction::write ? run_writes(setting, access)
                                                  : run_reads(setting, access, state.bytes_read);
}

std::uint64_t Exchange::bytes_read() const { return state_->bytes_read; }

base::Status Exchange::agree(const base::Status& mine, const comm::Patience& patience) {
  State& state = *state_;
  const std::uint32_t failed = mine.ok() ? 0 : 1;
  std::vector<std::uint32_t> all(state.notices.size());
  if (base::Status status = state.comm->allgather(&failed, sizeof failed, all.data(), patience);
      !status.ok())
    return status;
  const auto lowest = std::find(all.begin(), all.end(), 1u);
  if (lowest == all.end()) return {};
  comm::ErrorRecord record = mine.ok() ? comm::ErrorRecord{} : comm::to_record(mine.error());
  if (record.rank < 0) record.rank = state.comm->rank();
  std::vector<comm::ErrorRecord> records(all.size());
  if (base::Status status = state.comm->allgather(&record, sizeof record, records.data(), patience);
      !status.ok())
    return status;
  return comm::from_record(records[static_cast<std::size_t>(lowest - all.begin())]);
}

}  // namespace pario::exchange
