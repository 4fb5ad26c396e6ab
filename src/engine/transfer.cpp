// Moving bytes: alone, together, and without waiting.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>

#include "engine/file.hpp"
#include "engine/report.hpp"

namespace pario::engine {
namespace {

using Count = base::Result<std::uint64_t>;

/// Windows of a collective call, to and from the file. What is read of a call that writes is to be written back.
class FileSink final : public exchange::Sink {
 public:
  FileSink(storage::File& file, std::uint64_t unit, plan::Direction direction, Claims& claims)
      : file_(file), unit_(unit), direction_(direction), claim_(claims) {}

  base::Status write(std::uint64_t offset, std::span<const std::byte> data) override {
    if (offset % unit_ == 0 && data.size() % unit_ == 0) whole_units_.fetch_add(1, std::memory_order_relaxed);
    return file_.write(offset, data);
  }
  Count read(std::uint64_t offset, std::span<std::byte> data) override {
    if (direction_ == plan::Direction::write && !claim_.granted()) return base::Error{.number = EBUSY, .operation = "read"};
    Count count = file_.read(offset, data);
    if (count) std::ranges::fill(data.subspan(*count), std::byte{0});
    return count;
  }
  std::uint64_t whole_units() const { return whole_units_; }

 private:
  storage::File& file_;
  std::uint64_t unit_;
  plan::Direction direction_;
  Claim claim_;
  std::atomic<std::uint64_t> whole_units_{0};
};

plan::Holes choose(std::uint64_t runs, std::uint64_t covered, std::uint64_t holes, const void* context) {
  const auto& terms = *static_cast<const Terms*>(context);
  return plan::choose_holes(runs, covered, holes, terms.layout, terms.hints);
}

std::uint64_t& calls_of(Statistics& figures, plan::Direction direction, With with) {
  if (direction == plan::Direction::write) return with == With::together ? figures.collective_writes : figures.independent_writes;
  return with == With::together ? figures.collective_reads : figures.independent_reads;
}

/// The same on all ranks.
bool may_keep(const Terms& terms) { return terms.hints.pario_write_behind > 0 || terms.hints.pario_merge_collectives > 0; }

std::uint64_t& bytes_of(Statistics& figures, plan::Direction direction) {
  return direction == plan::Direction::write ? figures.bytes_written : figures.bytes_read;
}

}  // namespace

Count File::write(const pattern::Access& access, With with, const char* call) { return transfer(Direction::write, access, with, call); }

Count File::read(const pattern::Access& access, With with, const char* call) { return transfer(Direction::read, access, with, call); }

Count File::transfer(Direction direction, const pattern::Access& access, With with, const char* call) {
  if (with == With::alone) return alone(direction, access, call, *terms());
  finish_started();
  write_behind();
  return together(*stream_, direction, access, call, *terms());
}

void File::refuse(Direction direction, const base::Error& error, const char* name) {
  finish_started();
  refuse_in(*stream_, direction, error, name, *terms());
}

void File::start_refusal(Direction direction, const base::Error& error, const char* name) {
  start_together([this, direction, error, name, current = terms()]() -> Count {
    refuse_in(started_stream(name), direction, error, name, *current);
    return error;
  });
}

/// Takes the steps that together() takes on the other ranks.
void File::refuse_in(Stream& stream, Direction direction, const base::Error& error, const char* name, const Terms& terms) {
  if (!merges(direction, terms)) behind_.leave_error(finish_merged(stream));
  Call call = data_call(direction, name, terms);
  call.error = error;
  static_cast<void>(stream.convene(call));
}

void File::miss(std::optional<Direction> direction, const base::Error& error, const char* name) {
  Call call = direction ? data_call(*direction, name, *terms()) : call_of(name);
  call.error = error;
  stream_->miss(call);
}

Call File::data_call(Direction direction, const char* name, const Terms& terms) const {
  Call call = call_of(name);
  call.moves_data = true;
  call.direction = direction;
  call.compare_names = terms.hints.pario_check;
  return call;
}

Count File::alone(Direction direction, const pattern::Access& access, const char* call, const Terms& terms) {
  Statistics figures;
  Count moved = std::uint64_t{0};
  {
    const Timer timer(figures.total_ns);
    moved = in_order(direction, access, pattern::summarise(access), terms, figures);
  }
  ++calls_of(figures, direction, With::alone);
  if (moved) bytes_of(figures, direction) += *moved;
  ledger_.add(figures);
  if (!moved) return located(moved.error(), call);
  const base::Status earlier = behind_.take_error();
  return earlier ? moved : Count(earlier.error());
}

Count File::and_verified(Direction direction, const pattern::Access& access, const pattern::Summary& summary, const Terms& terms,
                         Statistics& figures) {
  Count moved = independent(direction, access, summary, terms, figures);
  if (!moved || direction == Direction::read || !terms.hints.pario_verify || access.bytes == 0) return moved;
  Mover::Figures ignored;
  const base::Status same = mover(terms, ignored).verify(access, summary.span);
  return same ? moved : Count(same.error());
}

Count File::independent(Direction direction, const pattern::Access& access, const pattern::Summary& summary, const Terms& terms,
                        Statistics& figures) {
  Mover::Figures moved;
  Count count = mover(terms, moved).move(direction, access, summary);
  add(figures.tally, moved.tally);
  figures.sieved_calls += moved.sieved;
  return count;
}

Count File::together(Stream& stream, Direction direction, const pattern::Access& access, const char* name, const Terms& terms) {
  Statistics figures;
  Call call = data_call(direction, name, terms);
  Count moved = std::uint64_t{0};
  {
    const Timer timer(figures.total_ns);
    if (!merges(direction, terms)) behind_.leave_error(finish_merged(stream));
    call.summary = pattern::summarise(access);
    const auto ranks = gathered(stream, call, figures);
    if (!ranks)
      moved = ranks.error();
    else
      moved = merges(direction, terms) ? merge(stream, call, *ranks, access, terms, figures)
                                       : carried_out(stream, call, *ranks, access, terms, figures);
  }
  ++calls_of(figures, direction, With::together);
  if (moved) bytes_of(figures, direction) += *moved;
  ledger_.add(figures);
  return moved ? moved : Count(located(moved.error(), name));
}

plan::Plan File::plan_of(std::span<const pattern::Summary> ranks, Direction direction, const Terms& terms) const {
  return plan::make_plan({direction, ranks, comm_->topology().node_of, terms.layout}, terms.hints);
}

/// What all ranks bring to a call.
base::Result<std::vector<pattern::Summary>> File::gathered(Stream& stream, const Call& call, Statistics& figures) {
  if (comm_->size() == 1 && !call.error) return std::vector{call.summary};
  const auto notices = timed(figures.tally.wait_ns, [&] { return stream.convene(call); });
  if (!notices) return notices.error();
  std::vector<pattern::Summary> ranks(notices->size());
  std::ranges::transform(*notices, ranks.begin(), &exchange::Notice::summary);
  return ranks;
}

Count File::carried_out(Stream& stream, const Call& call, std::span<const pattern::Summary> ranks, const pattern::Access& access,
                        const Terms& terms, Statistics& figures) {
  if (comm_->size() == 1) return told(stream, call, and_verified(call.direction, access, call.summary, terms, figures), figures);
  const plan::Plan plan = plan_of(ranks, call.direction, terms);
  if (plan.way == plan::Way::nothing) return may_keep(terms) ? told(stream, call, std::uint64_t{0}, figures) : std::uint64_t{0};
  const bool direct = plan.way == plan::Way::direct || terms.atomic;
  ++(direct ? figures.direct_calls : figures.window_calls);
  Count mine = told(stream, call,
                    direct ? independent(call.direction, access, call.summary, terms, figures)
                           : through_windows(stream, plan, call, access, terms, figures),
                    figures);
  if (!mine) return mine;
  if (const base::Status same = verified(stream, call, access, terms); !same) return same.error();
  return mine;
}

/// What has gone wrong on any rank, now or earlier with bytes that were kept back, is told to all.
Count File::told(Stream& stream, const Call& call, const Count& mine, Statistics& figures) {
  const base::Status outcome = mine ? behind_.take_error() : base::Status(located(mine.error(), call.name));
  const base::Status all = timed(figures.tally.wait_ns, [&] { return stream.agree(outcome, call); });
  return all ? mine : Count(all.error());
}

Count File::through_windows(Stream& stream, const plan::Plan& plan, const Call& call, const pattern::Access& access, const Terms& terms,
                            Statistics& figures) {
  const bool modifies = call.direction == Direction::write && plan.holes != plan::Holes::none && plan.holes != plan::Holes::runs;
  std::optional<Passage> passage;
  if (modifies) passage.emplace(*gate_, true);
  FileSink sink(*file_, terms.layout.unit, call.direction, *claims_);
  const base::Status status = stream.run(plan, access, sink, choose, &terms, call, figures.tally);
  if (call.direction == Direction::write) figures.tally.whole_units += sink.whole_units();
  if (!status) return status.error();
  return call.direction == Direction::read ? stream.exchange().bytes_read() : access.bytes;
}

base::Status File::verified(Stream& stream, const Call& call, const pattern::Access& access, const Terms& terms) {
  if (!terms.hints.pario_verify || call.direction != Direction::write) return {};
  Mover::Figures ignored;
  base::Status same;
  if (access.bytes > 0) same = mover(terms, ignored).verify(access, call.summary.span);
  return stream.agree(same, call);
}

std::shared_ptr<Operation> File::start(Direction direction, const pattern::Access& access, With with, const char* call) {
  if (with == With::alone)
    return start_alone([this, direction, access, call, current = terms()] { return alone(direction, access, call, *current); });
  return start_together(
      [this, direction, access, call, current = terms()] { return together(started_stream(call), direction, access, call, *current); });
}

std::shared_ptr<Operation> File::start_alone(Task::Work work) {
  in_flight_->begin();
  auto task = std::make_shared<Task>([work = std::move(work), in_flight = in_flight_] {
    Count count = work();
    in_flight->end();
    return count;
  });
  submit_to_process(task);
  return task;
}

std::shared_ptr<Operation> File::start_together(Task::Work work) {
  write_behind();
  auto task = std::make_shared<Task>(std::move(work));
  if (worker_comm_) {
    if (!worker_.submit(task)) task->run();
    return task;
  }
  task->carried_out_by([this] { run_deferred(); });
  const std::scoped_lock lock(deferred_mutex_);
  deferred_.push_back(task);
  return task;
}

Stream& File::started_stream(const char* call) {
  if (!worker_comm_) return *stream_;
  if (worker_stream_) return *worker_stream_;
  worker_comm_->announce(call);
  worker_stream_ = std::make_unique<Stream>(worker_comm_, comm_, request_.path, effective_.pario_memory, call_of(call));
  return *worker_stream_;
}

void File::run_deferred() {
  const std::scoped_lock lock(deferred_mutex_);
  while (!deferred_.empty()) {
    deferred_.front()->run();
    deferred_.pop_front();
  }
}

void File::finish_started() {
  worker_.drain(patience());
  run_deferred();
}

}  // namespace pario::engine
