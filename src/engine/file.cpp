#include "engine/file.hpp"

#include <fcntl.h>

#include <cerrno>

#include "engine/report.hpp"

namespace pario::engine {
namespace {

std::uint64_t hash_of(std::uint64_t value) { return base::xxh64(&value, sizeof value); }

}  // namespace

void add(exchange::Tally& to, const exchange::Tally& more) {
  to.wait_ns += more.wait_ns;
  to.copy_ns += more.copy_ns;
  to.message_ns += more.message_ns;
  to.file_ns += more.file_ns;
  to.messages += more.messages;
  to.message_bytes += more.message_bytes;
  to.file_writes += more.file_writes;
  to.file_write_bytes += more.file_write_bytes;
  to.file_reads += more.file_reads;
  to.file_read_bytes += more.file_read_bytes;
  to.whole_units += more.whole_units;
  to.modified += more.modified;
  to.hole_bytes += more.hole_bytes;
}

void add(Statistics& to, const Statistics& more) {
  to.collective_writes += more.collective_writes;
  to.collective_reads += more.collective_reads;
  to.independent_writes += more.independent_writes;
  to.independent_reads += more.independent_reads;
  to.bytes_written += more.bytes_written;
  to.bytes_read += more.bytes_read;
  to.direct_calls += more.direct_calls;
  to.window_calls += more.window_calls;
  to.sieved_calls += more.sieved_calls;
  to.behind_calls += more.behind_calls;
  to.behind_writes += more.behind_writes;
  to.merged_calls += more.merged_calls;
  to.merged_exchanges += more.merged_exchanges;
  to.total_ns += more.total_ns;
  add(to.tally, more.tally);
}

void Ledger::add(const Statistics& more) {
  const std::scoped_lock lock(mutex_);
  engine::add(total_, more);
}

Statistics Ledger::total() const {
  const std::scoped_lock lock(mutex_);
  return total_;
}

void InFlight::end() {
  count.fetch_sub(1);
  base::futex_wake(count);
}

void InFlight::drain(const comm::Patience& patience) const {
  static_cast<void>(comm::wait_until(count, [this] { return count.load() == 0; }, patience));
}

File::~File() {
  worker_.drain(patience());
  in_flight_->drain(patience());
  forget_keeping();
  static_cast<void>(save());
}

Call File::call_of(const char* name, std::uint64_t check) const { return {.name = name, .check = check, .limits = limits()}; }

comm::Watchdog File::watchdog(const char* call) const {
  return {*comm_, *comm_, limits(), {.path = request_.path, .call = call, .say = say}};
}

base::Error File::located(base::Error error, const char* call) const {
  if (*error.operation == 0) error.operation = call;
  if (error.path.empty()) error.path = request_.path;
  if (error.rank < 0) error.rank = comm_->rank();
  return error;
}

base::Status File::settle(const base::Status& mine, const char* operation, const Call& call) {
  return stream_->agree(mine ? mine : located(mine.error(), operation), call);
}

std::shared_ptr<const Terms> File::terms() const {
  const std::scoped_lock lock(terms_mutex_);
  return terms_;
}

void File::set_terms(Terms terms) {
  auto replaced = std::make_shared<const Terms>(std::move(terms));
  const std::scoped_lock lock(terms_mutex_);
  terms_ = std::move(replaced);
}

base::Result<std::uint64_t> File::size() {
  const std::uint64_t kept = end_of_kept();  // first: what is written meanwhile is in the file
  const Count size = file_->size();
  return size ? std::max(*size, kept) : Count(located(size.error(), "get_size"));
}

/// After all ranks have come; what became of it is told to all, and what had gone wrong before on this one.
base::Status File::by_rank_0(const char* name, std::uint64_t check, const std::function<base::Status()>& act, base::Status mine) {
  finish_started();
  const Call call = call_of(name, check);
  if (const auto met = stream_->convene(call); !met) return met.status();
  if (const base::Status acted = first() ? act() : base::Status(); mine) mine = acted;
  return settle(mine, name, call);
}

base::Status File::resize(std::uint64_t size) {
  base::Status kept = finish_writes();
  return by_rank_0("MPI_File_set_size", hash_of(size), [&] { return file_->resize(size); }, std::move(kept));
}

base::Status File::preallocate(std::uint64_t size) {
  base::Status kept = finish_writes();
  return by_rank_0("MPI_File_preallocate", hash_of(size), [&] { return file_->preallocate(size); }, std::move(kept));
}

base::Status File::seek_shared(std::uint64_t position) {
  return by_rank_0("MPI_File_seek_shared", hash_of(position), [&] { return pointer_->set(position); });
}

/// One rank of a node syncs for all of them: they share the cache. After that all see what other nodes have written.
base::Status File::sync() {
  in_flight_->drain(patience());
  base::Status mine = finish_writes();
  const Call call = call_of("MPI_File_sync");
  if (const auto met = stream_->convene(call); !met) return met.status();
  const base::Status synced = comm_->rank() == comm_->leader() ? file_->sync() : base::Status();
  if (mine) mine = synced;
  base::Status all = settle(mine, call.name, call);
  if (!all || comm_->topology().nodes() == 1) return all;
  return settle(file_->refresh(), call.name, call);
}

void File::set_atomic(bool atomic) {
  behind_.leave_error(finish_writes());
  static_cast<void>(stream_->convene(call_of("MPI_File_set_atomicity", hash_of(atomic))));
  Terms changed = *terms();
  changed.atomic = atomic;
  set_terms(std::move(changed));
}

base::Status File::set_hints(const hints::FileHints& hints) {
  finish_started();
  if (const auto met = stream_->convene(call_of("MPI_File_set_info")); !met) return met.status();
  hints::FileHints agreed = hints;
  if (base::Status status = broadcast(agreed); !status) return status;
  agreed = hints::hints_of_open_file(effective_, agreed);
  if (!readable_) agreed.romio_ds_write = hints::Choice::disable;
  if (agreed.pario_write_behind != effective_.pario_write_behind || agreed.pario_merge_collectives != effective_.pario_merge_collectives)
    behind_.leave_error(finish_writes());
  effective_ = std::move(agreed);
  Terms changed = *terms();
  changed.hints = effective_;
  set_terms(std::move(changed));
  return {};
}

bool File::visible_at_once() const { return engine::visible_at_once(*terms()); }

base::Result<std::uint64_t> File::advance_shared(std::uint64_t bytes) {
  Count before = pointer_->advance(bytes);
  return before ? before : Count(located(before.error(), "advance_shared"));
}

base::Result<std::uint64_t> File::shared_position() { return advance_shared(0); }

base::Result<std::uint64_t> File::order_shared(std::uint64_t bytes, const char* name) {
  finish_started();
  struct {
    int failed;
    std::uint64_t begin;
  } start{0, 0};
  Call call = call_of(name);
  call.summary.bytes = bytes;
  const auto notices = stream_->convene(call);
  if (!notices) return notices.error();
  std::uint64_t before = 0, all = 0;
  for (std::size_t rank = 0; rank < notices->size(); ++rank) {
    if (rank == static_cast<std::size_t>(comm_->rank())) before = all;
    all += (*notices)[rank].summary.bytes;
  }
  if (first()) {
    const Count begin = pointer_->advance(all);
    start = begin ? decltype(start){0, *begin} : decltype(start){begin.error().number, 0};
  }
  if (const base::Status status = broadcast(&start, sizeof start, name); !status) return status.error();
  if (start.failed != 0) return located({.number = start.failed, .rank = 0, .detail = "the shared file pointer"}, name);
  return start.begin + before;
}

base::Status File::agree(std::uint64_t hash, const base::Status& mine, const char* name) {
  finish_started();
  Call call = call_of(name, hash);
  if (!mine) call.error = mine.error();
  const auto met = stream_->convene(call);
  return met ? base::Status() : met.status();
}

std::vector<HintOutcome> File::audit() const { return audit_of(request_, effective_, striping_reason_); }

base::Status File::close() {
  if (closed_) return {};
  closed_ = true;
  in_flight_->drain(patience());
  base::Status mine = finish_writes();
  forget_keeping();
  const Call call = call_of("MPI_File_close");
  const auto met = stream_->convene(call);
  if (met) close_report();
  if (first()) pointer_->remove();
  const base::Status closed = file_->close();
  if (mine) mine = closed;
  if (!met) return leave(met.error());
  base::Status all = settle(mine, call.name, call);
  base::Status then = after_closing(all.ok());
  return all ? then : all;
}

/// Closed while the others are in another call: they must not wait for this rank any more.
base::Error File::leave(const base::Error& error) {
  const std::string name = comm::named(std::vector{comm_->world_rank(comm_->rank())});
  comm_->fail(located({.number = ESTALE, .detail = name + " has closed the file, and will take part in no other call"}, "MPI_File_close"));
  static_cast<void>(comm_->failure());  // tells the other nodes
  return error;
}

/// What becomes of the file when no rank has it open any more.
base::Status File::after_closing(bool complete) {
  const bool written = complete && (request_.flags & O_ACCMODE) != O_RDONLY;
  const bool joins = written && file_->subfiles() > 1 && effective_.pario_join != hints::Choice::disable;
  if (!request_.delete_on_close && !joins) return {};
  base::Status mine;
  if (first()) mine = request_.delete_on_close ? storage::remove(request_.path) : join();
  return settle(mine, request_.delete_on_close ? "delete" : "join", call_of("MPI_File_close"));
}

/// Subfiles that are not joined are no less complete.
base::Status File::join() {
  const bool must = effective_.pario_join == hints::Choice::enable;
  base::Status joined = storage::join(request_.path, {}, must ? storage::Joining::by_all_means : storage::Joining::by_sharing);
  const bool in_use = !joined && joined.error().number == EBUSY;  // who closes it last joins it
  return must && !in_use ? joined : base::Status();
}

/// A failure to report is no failure to close.
void File::close_report() {
  const RankFigures mine{ledger_.total(), open_ns_};
  std::vector<RankFigures> all(static_cast<std::size_t>(comm_->size()), mine);
  if (comm_->size() > 1 && !stream_->gather(&mine, sizeof mine, all.data(), call_of("MPI_File_close"))) return;
  if (first()) report({request_.path, *comm_, effective_, terms()->layout, audit(), all});
}

}  // namespace pario::engine
