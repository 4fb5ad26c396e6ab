#include "parallel/engine/opening.hpp"

#include <fcntl.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/file/new_file.hpp"
#include "parallel/engine/current_call.hpp"
#include "parallel/engine/hint_texts.hpp"
#include "parallel/engine/report.hpp"
#include "parallel/engine/run_ahead.hpp"

namespace pario::engine {
namespace {

constexpr unsigned kPermissions = 0777;
constexpr const char* kOpen = "MPI_File_open";

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
    number = base::monotonic_ns();
  return number;
}

unsigned mode_of(const OpenRequest& request) {
  if (request.hints.file_perm.empty()) return request.mode;
  const unsigned long octal = std::strtoul(request.hints.file_perm.c_str(), nullptr, 8);
  return static_cast<unsigned>(octal) & kPermissions;
}

base::Status check_strict(const OpenRequest& request) {
  if (!request.hints.pario_strict || request.rejected.empty()) return {};
  return base::Error{.number = EINVAL,
                     .operation = "open",
                     .path = request.path,
                     .detail = request.rejected.front().reason};
}

}  // namespace

base::Result<std::shared_ptr<comm::Comm>> make_comm(std::uintptr_t communicator,
                                                    const std::string& path,
                                                    const hints::FileHints& hints) {
  const comm::WaitLimits limits{hints.pario_watchdog, hints.pario_patience, hints.pario_silence};
  return comm::make_mpi(
      communicator, comm::watch_file_open(communicator, limits, path, say, describe_current_call),
      describe_current_call);
}

base::Status remove(const std::string& path) { return file::remove(path); }

Opening::Opening(std::shared_ptr<comm::Comm> comm, const OpenRequest& request, const Opener& opener)
    : state_(std::make_unique<OpenedFile>(std::move(comm), request)),
      context_(state_->context),
      opener_(opener) {}

base::Result<std::unique_ptr<SharedFile>> Opening::run() {
  {
    const exchange::Timer timer(state_->open_ns);
    if (base::Status status = run_steps(); !status) return status.error();
  }
  return std::unique_ptr<SharedFile>(new SharedFile(std::move(state_)));
}

base::Status Opening::run_steps() {
  context_.comm().announce(kOpen);
  base::Status mine;
  if (context_.is_first()) mine = open_first();
  if (const base::Status status = share_facts(mine); !status) return status;
  context_.set_hints(state_->request.hints);
  if (const base::Status status = make_calls(); !status) return status;
  if (const base::Status status = make_gate_and_pointer(); !status) return status;
  if (const base::Status status = share_windows(); !status) return status;
  if (!context_.is_first()) {
    const int kept = state_->request.flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_ACCMODE);
    mine = open_with_flags(kept | facts_.access);
  }
  if (mine) mine = make_handle_locks();
  const Call call = context_.describe_call(kOpen);
  if (const base::Status status = state_->transfers.calls().agree(mine, call); !status)
    return status;
  set_policy();
  state_->transfers.kept_writes().watch_windows();
  return {};
}

base::Status Opening::open_first() {
  const OpenRequest& request = state_->request;
  facts_.number = random_number();
  if (base::Status status = check_strict(request); !status) return status;
  if (base::Status status = open_readable(); !status) return status;
  facts_.access = request.flags & O_ACCMODE;
  const file::StripingOutcome outcome =
      file::striping_outcome(make_file_request(request.flags), context_.file());
  facts_.layout = context_.file().layout();
  facts_.has_subfiles = context_.file().subfiles() > 1;
  facts_.has_stripes = outcome.supported;
  state_->striping_reason = outcome.reason;
  return {};
}

/// Opens a write-only file for reading, too, if that is permitted: windows with holes are read.
base::Status Opening::open_readable() {
  OpenRequest& request = state_->request;
  if ((request.flags & O_ACCMODE) != O_WRONLY) return open_with_flags(request.flags);
  const int readable = (request.flags & ~O_ACCMODE) | O_RDWR;
  base::Status status = open_with_flags(readable);
  if (!status && status.error().number == EACCES) {
    request.hints.romio_ds_write = hints::Choice::disable;
    return open_with_flags(request.flags);
  }
  if (status) request.flags = readable;
  return status;
}

base::Status Opening::open_with_flags(int flags) {
  auto file = opener_(make_file_request(flags));
  if (!file) return context_.complete_error(file.error(), "open");
  context_.set_file(std::move(*file));
  return {};
}

file::OpenRequest Opening::make_file_request(int flags) const {
  const OpenRequest& request = state_->request;
  const hints::FileHints& hints = request.hints;
  const bool is_known = !context_.is_first() && has_one_node() && !facts_.has_subfiles;
  return {.path = request.path,
          .flags = flags,
          .mode = mode_of(request),
          .striping = hints,
          .writers = static_cast<std::uint32_t>(context_.comm().size()),
          .subfiles = static_cast<std::uint32_t>(hints.pario_subfiles),
          .known_layout = is_known ? std::optional(facts_.layout) : std::nullopt,
          .require_complete = context_.is_first()};
}

/// Copies the facts and hints of rank 0, or its error, to all ranks.
base::Status Opening::share_facts(const base::Status& mine) {
  const bool first = context_.is_first();
  if (context_.comm().size() == 1) return mine;
  std::string text;
  if (first) text = mine ? format_hints(state_->request.hints) : mine.error().detail;
  facts_.failed = mine ? 0 : mine.error().number;
  facts_.text_size = text.size();
  if (base::Status status = context_.broadcast(&facts_, sizeof facts_, kOpen); !status)
    return status;
  text.resize(facts_.text_size);
  if (base::Status status = context_.broadcast(text.data(), text.size(), kOpen); !status)
    return status;
  if (first) return mine;
  if (facts_.failed != 0)
    return context_.complete_error({.number = facts_.failed, .rank = 0, .detail = text}, "open");
  state_->request.hints = parse_hints(text);
  return {};
}

base::Status Opening::make_calls() {
  state_->transfers.open(context_.hints().pario_memory, kOpen);
  return context_.comm().has_failed() ? describe_failure() : base::Status();
}

/// Explains why memory cannot be shared; the other nodes get the error from agree().
base::Error Opening::describe_failure() {
  comm::Comm& comm = context_.comm();
  comm.fail({.number = ENOMEM, .detail = "no memory to share between ranks"});
  return context_.complete_error(comm.failure().error(), "open");
}

Opening::NodeParts Opening::choose_parts() const {
  const int ranks = context_.comm().local_size();
  NodeParts parts{.state = node_state_size(ranks)};
  if (!has_one_node()) return parts;
  if (may_write()) parts.locks = NodeLocks::memory_size();
  if (ranks > 1) parts.run_ahead = RunAhead::memory_size(ranks);
  parts.windows = ReadAhead::memory_size(ranks);
  return parts;
}

/// Makes the memory that the ranks of the node share, or that of a rank alone on its node. Null: no
/// memory can be shared. The windows of a rank alone are not touched before they are used.
std::byte* Opening::make_node_memory(const NodeParts& parts) {
  comm::Comm& comm = context_.comm();
  const std::size_t before = parts.state + parts.locks + parts.run_ahead;
  const std::size_t size = before + parts.windows;
  if (comm.local_size() > 1) {
    comm::Watchdog watch = context_.watchdog(kOpen);
    state_->node_memory = comm.share(size, watch.patience());
    return state_->node_memory ? state_->node_memory->data() : nullptr;
  }
  state_->own_memory = std::make_unique_for_overwrite<MemoryLine[]>(size / sizeof(MemoryLine));
  auto* const memory = reinterpret_cast<std::byte*>(state_->own_memory.get());
  std::memset(memory, 0, before + (parts.windows == 0 ? 0 : ReadAhead::kHeader));
  return memory;
}

base::Status Opening::make_gate_and_pointer() {
  comm::Comm& comm = context_.comm();
  const NodeParts parts = choose_parts();
  std::byte* memory = make_node_memory(parts);
  if (memory == nullptr) return describe_failure();
  auto gate = std::make_unique<WriteGate>(memory, comm, context_.path());
  auto store = has_one_node() ? make_pointer_in_memory(gate->state().shared_pointer)
                              : make_pointer_in_file(context_.path(), facts_.number);
  context_.guards().gate = std::move(gate);
  memory += parts.state;
  if (parts.locks != 0) make_locks(memory);
  memory += parts.locks;
  if (parts.run_ahead != 0)
    state_->transfers.calls().set_run_ahead(std::make_unique<RunAhead>(memory, comm));
  memory += parts.run_ahead;
  if (parts.windows != 0) windows_memory_ = memory;
  state_->pointer = std::make_unique<SharedPointer>(context_, state_->transfers, std::move(store));
  return {};
}

void Opening::make_locks(std::byte* memory) {
  if (context_.comm().local_rank() == 0) NodeLocks::initialise(memory);
  context_.guards().node = std::make_unique<NodeLocks>(memory);
}

/// Makes windows for delayed writes. The agreement at the end of the opening separates this from
/// the first write.
base::Status Opening::share_windows() {
  if (!may_write()) return {};
  comm::Watchdog watch = context_.watchdog(kOpen);
  KeptWrites& kept = state_->transfers.kept_writes();
  return kept.share_windows(facts_.layout.unit, watch.patience()) ? base::Status()
                                                                  : describe_failure();
}

/// Registers this handle before any of its ranks may write. Without locks across nodes no byte is
/// ever written back, and handles need not detect each other.
base::Status Opening::make_handle_locks() {
  file::File& file = context_.file();
  const comm::Comm& comm = context_.comm();
  context_.guards().handles = std::make_unique<HandleLocks>(file, facts_.number);
  const bool has_locks = layout::traits(file.layout().kind).locks_across_nodes;
  if (!may_write() || !has_locks || comm.rank() != comm.leader()) return {};
  const base::Status registered = context_.guards().handles->register_writer(comm.node());
  return registered ? registered : context_.complete_error(registered.error(), kOpen);
}

void Opening::set_policy() {
  const comm::Comm& comm = context_.comm();
  const layout::StripeLayout layout = comm.size() == 1 ? context_.file().layout() : facts_.layout;
  hints::FileHints effective = context_.hints();
  const layout::Striping got =
      facts_.has_stripes ? layout::Striping{layout.unit, layout.targets} : layout::Striping{};
  static_cast<hints::StripingHints&>(effective) =
      file::effective_hints(effective, layout.kind, got);
  effective.pario_subfiles = context_.file().subfiles();
  context_.set_policy({.hints = std::move(effective),
                       .layout = layout,
                       .atomic = false,
                       .one_node = has_one_node()});
  if (windows_memory_ != nullptr)
    context_.set_read_ahead(std::make_unique<ReadAhead>(windows_memory_, context_.file(),
                                                        comm.local_rank(), comm.local_size(),
                                                        state_->request.read_ahead_age_ns));
  note_event();  // the program may know of changes before the opening
  state_->is_readable = facts_.access != O_WRONLY;
  state_->is_closed = false;
}

}  // namespace pario::engine
