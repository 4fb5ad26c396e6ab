#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "parallel/engine/boxes.hpp"
#include "parallel/engine/closing.hpp"
#include "parallel/engine/hint_texts.hpp"
#include "parallel/engine/opened_file.hpp"
#include "parallel/engine/opening.hpp"
#include "parallel/engine/report.hpp"

namespace pario::engine {
namespace {

using Count = base::Result<std::uint64_t>;
using plan::Direction;

/// The needs of a rank that sets a view.
constexpr std::uint16_t kOtherHints = 1, kPointerReset = 2;
/// The need of a rank that syncs: it has changed the file since its last sync.
constexpr std::uint16_t kChanged = 1;

std::uint64_t hash_of(std::uint64_t value) { return base::xxh64(&value, sizeof value); }

/// Returns the needs of all ranks.
unsigned join_needs(OpenedFile::Notices notices) {
  unsigned needs = 0;
  for (const exchange::Notice& notice : notices) needs |= notice.needs;
  return needs;
}

/// Calls `change` with a size that all ranks give. Collective.
base::Status change_size(OpenedFile& opened, const char* name,
                         base::Status (file::File::*change)(std::uint64_t), std::uint64_t size) {
  base::Status earlier;
  const Call call = opened.context.describe_call(name, hash_of(size));
  if (base::Status met = opened.meet_and_flush(call, earlier); !met) return met;
  base::Status changed;
  if (opened.context.is_first()) changed = (opened.context.file().*change)(size);
  opened.context.note_change();
  return opened.agree_on_change(std::move(earlier), changed, call);
}

/// Returns the hints in force after a change of an open file to `wanted`.
hints::FileHints allowed_hints(const OpenedFile& opened, const hints::FileHints& wanted) {
  hints::FileHints hints = hints::hints_of_open_file(opened.context.hints(), wanted);
  if (!opened.is_readable) hints.romio_ds_write = hints::Choice::disable;
  return hints;
}

/// Collective, after a meeting: applies the hints of rank 0.
base::Status set_agreed_hints(OpenedFile& opened, hints::FileHints hints, const char* name) {
  FileContext& context = opened.context;
  if (base::Status sent = broadcast_hints(context, hints, name); !sent) return sent;
  hints::FileHints agreed = allowed_hints(opened, hints);
  if (agreed.pario_write_behind != context.hints().pario_write_behind ||
      agreed.pario_merge_collectives != context.hints().pario_merge_collectives) {
    KeptWrites& kept = opened.transfers.kept_writes();
    kept.errors().put_error(opened.transfers.flush());
    kept.flush();
  }
  AccessPolicy changed = *context.policy();
  changed.hints = std::move(agreed);
  context.set_policy(std::move(changed));
  return {};
}

/// Adds the text of `earlier` to an error of a meeting, after which no call reports it. If it names
/// no bytes, it has the same cause.
base::Error add_lost_bytes(const base::Error& error, const base::Status& earlier) {
  const bool lost = !earlier && !earlier.error().where.empty();
  return lost ? append_error(error, earlier.error()) : error;
}

}  // namespace

base::Error append_error(base::Error error, const base::Error& other) {
  error.detail += (error.detail.empty() ? "" : "; ") + ("another error: " + other.text());
  return error;
}

base::Result<OpenedFile::Notices> OpenedFile::meet(const Call& call) {
  note_event();
  base::Result<Notices> notices = transfers.calls().meet(call);
  transfers.kept_writes().errors().put_error(transfers.calls().take_earlier_error());
  return notices;
}

base::Status OpenedFile::meet_and_flush(const Call& call, base::Status& earlier) {
  earlier = transfers.flush();
  const base::Status met = meet(call).status();
  flush_windows(earlier);
  return met ? met : add_lost_bytes(met.error(), earlier);
}

void OpenedFile::flush_windows(base::Status& earlier) {
  if (transfers.kept_writes().has_windows())
    transfers.kept_writes().flush();  // all ranks have come: no hole will be filled any more
  if (earlier) earlier = transfers.kept_writes().errors().take_error();
}

base::Status OpenedFile::agree(const base::Status& mine, const char* operation, const Call& call) {
  const base::Status outcome = mine ? mine : context.complete_error(mine.error(), operation);
  return transfers.calls().agree(outcome, call);
}

base::Status OpenedFile::agree_on_change(base::Status earlier, const base::Status& changed,
                                         const Call& call) {
  if (earlier) earlier = changed;
  return agree(earlier, call.name, call);
}

SharedFile::SharedFile(std::unique_ptr<OpenedFile> state) : state_(std::move(state)) {}

SharedFile::~SharedFile() = default;

base::Result<std::unique_ptr<file::File>> open_file(const file::OpenRequest& request) {
  return file::open(request);
}

base::Result<std::unique_ptr<SharedFile>> SharedFile::open(std::shared_ptr<comm::Comm> comm,
                                                           const OpenRequest& request,
                                                           const Opener& opener) {
  return Opening(std::move(comm), request, opener).run();
}

base::Result<std::unique_ptr<SharedFile>> SharedFile::open(std::shared_ptr<comm::Comm> comm,
                                                           const std::string& path,
                                                           const hints::FileHints& hints) {
  return open(std::move(comm), {.path = path, .flags = O_RDWR | O_CREAT, .hints = hints});
}

base::Status SharedFile::close() {
  if (state_->is_closed) return {};
  state_->is_closed = true;
  return close_file(*state_);
}

Count SharedFile::write(const pattern::Access& access, With with, const char* call) {
  return state_->transfers.run(Direction::write, access, with, call);
}

Count SharedFile::read(const pattern::Access& access, With with, const char* call) {
  return state_->transfers.run(Direction::read, access, with, call);
}

Count SharedFile::move_run(Direction direction, base::Extent where, std::byte* memory, With with,
                           const char* call) {
  return state_->transfers.move_run(direction, where, memory, with, call);
}

Count SharedFile::write_boxes(std::span<const Box> boxes) {
  return move_boxes(*this, Direction::write, boxes);
}

Count SharedFile::read_boxes(std::span<const Box> boxes) {
  return move_boxes(*this, Direction::read, boxes);
}

std::shared_ptr<Operation> SharedFile::start(Direction direction, const pattern::Access& access,
                                             With with, const char* call) {
  return state_->transfers.start(direction, access, with, call);
}

void SharedFile::refuse(Direction direction, const base::Error& error, const char* call) {
  state_->transfers.refuse(direction, error, call);
}

void SharedFile::start_refusal(Direction direction, const base::Error& error, const char* call) {
  state_->transfers.start_refusal(direction, error, call);
}

void SharedFile::miss(std::optional<Direction> direction, const base::Error& error,
                      const char* call) {
  state_->transfers.miss(direction, error, call);
}

Count SharedFile::size() {
  note_event();  // the program may wait for the file to grow
  const std::uint64_t kept =
      state_->transfers.kept_writes().end();  // first: kept bytes may be in flight to the file
  const Count size = state_->context.file().size();
  if (!size) return state_->context.complete_error(size.error(), "get_size");
  return std::max(*size, kept);
}

base::Status SharedFile::resize(std::uint64_t size) {
  return change_size(*state_, "MPI_File_set_size", &file::File::resize, size);
}

base::Status SharedFile::preallocate(std::uint64_t size) {
  return change_size(*state_, "MPI_File_preallocate", &file::File::preallocate, size);
}

/// Syncs the file once per node, because its ranks share the page cache, if a rank has changed it;
/// then every rank drops cached bytes that other nodes may have changed.
base::Status SharedFile::sync() {
  FileContext& context = state_->context;
  state_->transfers.finish_independent();
  base::Status earlier = state_->transfers.flush();
  Call call = context.describe_call("MPI_File_sync");
  if (context.take_changed()) call.needs |= kChanged;
  const auto notices = state_->meet(call);
  const bool changed = !notices || (join_needs(*notices) & kChanged) != 0;
  state_->flush_windows(earlier);
  if (!notices) {
    context.set_changed();
    return add_lost_bytes(notices.error(), earlier);
  }
  const comm::Comm& comm = context.comm();
  const bool syncs = changed && comm.rank() == comm.leader();
  const base::Status synced = syncs ? context.file().sync() : base::Status();
  base::Status all = state_->agree_on_change(std::move(earlier), synced, call);
  if (!all && changed) context.set_changed();  // the next call tries again
  if (!all || comm.topology().nodes() == 1) return all;
  return state_->agree(context.file().refresh(), call.name, call);
}

base::Status SharedFile::set_atomic(bool atomic) {
  FileContext& context = state_->context;
  const Call call = context.describe_call("MPI_File_set_atomicity", hash_of(atomic));
  base::Status earlier;
  if (base::Status met = state_->meet_and_flush(call, earlier); !met) return met;
  state_->transfers.kept_writes().errors().put_error(earlier);
  AccessPolicy changed = *context.policy();
  changed.atomic = atomic;
  context.set_policy(std::move(changed));
  return {};
}

bool SharedFile::atomic() const { return state_->context.policy()->atomic; }

SharedPointer& SharedFile::pointer() { return *state_->pointer; }

base::Status SharedFile::agree(std::uint64_t hash, const base::Status& mine, const char* name) {
  state_->transfers.finish_started();
  Call call = state_->context.describe_call(name, hash);
  if (!mine) call.error = mine.error();
  return state_->meet(call).status();
}

const comm::Comm& SharedFile::comm() const { return state_->context.comm(); }

const std::string& SharedFile::path() const { return state_->context.path(); }

const hints::FileHints& SharedFile::hints() const { return state_->context.hints(); }

base::Status SharedFile::set_hints(const hints::FileHints& hints) {
  constexpr const char* kCall = "MPI_File_set_info";
  state_->transfers.finish_started();
  const auto met = state_->meet(state_->context.describe_call(kCall));
  if (!met) return met.status();
  return set_agreed_hints(*state_, hints, kCall);
}

base::Status SharedFile::begin_view(const hints::FileHints& hints, const base::Status& mine,
                                    const char* name) {
  state_->transfers.finish_started();
  Call call = state_->context.describe_call(name);
  if (!mine) call.error = mine.error();
  if (allowed_hints(*state_, hints) != state_->context.hints()) call.needs |= kOtherHints;
  if (state_->pointer->has_moved()) call.needs |= kPointerReset;
  const auto notices = state_->meet(call);
  if (!notices) return notices.status();
  const unsigned needs = join_needs(*notices);
  if ((needs & kOtherHints) != 0)
    if (base::Status set = set_agreed_hints(*state_, hints, name); !set) return set;
  return (needs & kPointerReset) != 0 ? state_->pointer->seek(0).status() : base::Status();
}

std::uint64_t SharedFile::policy_number() const { return state_->context.policy_number(); }

bool SharedFile::visible_at_once() const {
  return engine::visible_at_once(*state_->context.policy());
}

std::vector<HintOutcome> SharedFile::audit() const {
  return make_audit(state_->request, state_->context.hints(), state_->striping_reason,
                    state_->context.used_windows());
}

Statistics SharedFile::statistics() const { return state_->context.statistics(); }

}  // namespace pario::engine
