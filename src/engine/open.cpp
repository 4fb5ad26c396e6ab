// Opening: rank 0 creates the file and looks at it, the others follow.
#include <fcntl.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "engine/file.hpp"
#include "engine/report.hpp"
#include "storage/stripes.hpp"

namespace pario::engine {
namespace {

constexpr unsigned kPermissions = 0777;
constexpr std::uint64_t kAnyTarget = 65535;
constexpr const char* kOpen = "MPI_File_open";

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) number = base::monotonic_ns();
  return number;
}

unsigned mode_of(const OpenRequest& request) {
  if (request.hints.file_perm.empty()) return request.mode;
  return static_cast<unsigned>(std::strtoul(request.hints.file_perm.c_str(), nullptr, 8)) & kPermissions;
}

std::string text_of(const hints::FileHints& hints) {
  std::string text;
  for (const hints::Setting& setting : hints::settings_of(hints)) text += setting.key + "=" + setting.value + "\n";
  return text;
}

hints::FileHints hints_of(const std::string& text) {
  hints::FileHints hints = hints::default_file_hints();
  std::istringstream lines(text);
  std::string reason;
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    static_cast<void>(hints::set(hints, {line.substr(0, equals), line.substr(equals + 1)}, reason));
  }
  return hints;
}

base::Status strictly(const OpenRequest& request) {
  if (!request.hints.pario_strict || request.rejected.empty()) return {};
  return base::Error{.number = EINVAL, .operation = "open", .path = request.path, .detail = request.rejected.front().reason};
}

}  // namespace

/// Plain words, sent as they are; a text follows: the hints, or why opening failed.
struct File::Opened {
  int failed = 0;
  int access = 0;  // O_RDONLY, O_WRONLY or O_RDWR
  std::uint64_t text_size = 0;
  std::uint64_t number = 0;  // at random, for names
  layout::StripeLayout layout = {};
  bool striped = false;
};

base::Result<std::shared_ptr<comm::Comm>> make_comm(std::uintptr_t communicator, const std::string& path, const hints::FileHints& hints) {
  const comm::WaitLimits limits{hints.pario_watchdog, hints.pario_patience, hints.pario_silence};
  return comm::make_mpi(communicator, comm::watch_opening(communicator, limits, path, say));
}

base::Status remove(const std::string& path) { return storage::remove(path); }

base::Result<std::unique_ptr<SharedFile>> SharedFile::open(std::shared_ptr<comm::Comm> comm, const OpenRequest& request) {
  return open_with(std::move(comm), request, [](const storage::OpenRequest& file) { return storage::open(file); });
}

base::Result<std::unique_ptr<SharedFile>> SharedFile::open_with(std::shared_ptr<comm::Comm> comm, const OpenRequest& request,
                                                                const Opener& opener) {
  auto file = std::make_unique<File>(std::move(comm), request);
  if (base::Status status = file->open_all(opener); !status) return status.error();
  return std::unique_ptr<SharedFile>(std::move(file));
}

File::File(std::shared_ptr<comm::Comm> comm, const OpenRequest& request)
    : comm_(std::move(comm)), request_(request), effective_(request.hints), threads_(process_lock(request.path)) {}

base::Status File::open_all(const Opener& opener) {
  const Timer timer(open_ns_);
  comm_->announce(kOpen);
  Opened opened;
  base::Status mine;
  if (first()) mine = open_first(opener, opened);
  if (const base::Status status = spread(opened, mine); !status) return status;
  effective_ = request_.hints;
  if (const base::Status status = make_streams(); !status) return status;
  if (const base::Status status = make_common(opened.number); !status) return status;
  if (!first()) mine = open_mine(opener, (request_.flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_ACCMODE)) | opened.access);
  if (mine) make_claims(opened.number);
  if (const base::Status status = stream_->agree(mine, call_of(kOpen)); !status) return status;
  take_effect(opened);
  return {};
}

base::Status File::open_first(const Opener& opener, Opened& opened) {
  opened.number = random_number();
  if (base::Status status = strictly(request_); !status) return status;
  if (base::Status status = open_readable(opener); !status) return status;
  opened.access = request_.flags & O_ACCMODE;
  const storage::StripingOutcome outcome = storage::striping_outcome(storage_request(request_.flags), *file_);
  opened.layout = file_->layout();
  opened.striped = outcome.supported;
  striping_reason_ = outcome.reason;
  return {};
}

/// What is only written is opened for reading, too, where that is allowed: windows with holes are read.
base::Status File::open_readable(const Opener& opener) {
  if ((request_.flags & O_ACCMODE) != O_WRONLY) return open_mine(opener, request_.flags);
  const int readable = (request_.flags & ~O_ACCMODE) | O_RDWR;
  base::Status status = open_mine(opener, readable);
  if (!status && status.error().number == EACCES) {
    request_.hints.romio_ds_write = hints::Choice::disable;
    return open_mine(opener, request_.flags);
  }
  if (status) request_.flags = readable;
  return status;
}

base::Status File::open_mine(const Opener& opener, int flags) {
  auto file = opener(storage_request(flags));
  if (!file) return located(file.error(), "open");
  file_ = std::move(*file);
  return {};
}

storage::OpenRequest File::storage_request(int flags) const {
  const hints::FileHints& hints = request_.hints;
  const auto ranks = static_cast<std::uint32_t>(comm_->size()), told = static_cast<std::uint32_t>(hints.pario_expected_writers);
  const std::uint32_t writers = told != 0 ? told : ranks;
  const layout::Striping striping = storage::wanted_striping(request_.path, hints, writers);
  return {.path = request_.path,
          .flags = flags,
          .mode = mode_of(request_),
          .striping_unit = striping.unit,
          .striping_factor = striping.targets,
          .start_target = striping.start,
          .growing_writers = hints.pario_growing && hints.pario_expected_size == 0 ? writers : 0,
          .subfiles = static_cast<std::uint32_t>(hints.pario_subfiles)};
}

/// What rank 0 found, and its hints, to all; or why it could not open the file.
base::Status File::spread(Opened& opened, const base::Status& mine) {
  if (comm_->size() == 1) return mine;
  std::string text = first() ? (mine ? text_of(request_.hints) : mine.error().detail) : std::string();
  opened.failed = mine ? 0 : mine.error().number;
  opened.text_size = text.size();
  if (base::Status status = broadcast(&opened, sizeof opened, kOpen); !status) return status;
  text.resize(opened.text_size);
  if (base::Status status = broadcast(text.data(), text.size(), kOpen); !status) return status;
  if (first() || opened.failed != 0) return first() ? mine : located({.number = opened.failed, .rank = 0, .detail = text}, "open");
  request_.hints = hints_of(text);
  return {};
}

base::Status File::broadcast(void* data, std::size_t size, const char* call) {
  if (comm_->size() == 1 || size == 0) return {};
  comm::Watchdog watch = watchdog(call);
  const base::Status status = comm_->broadcast(data, size, 0, watch.patience());
  return status ? status : located(status.error(), call);
}

base::Status File::broadcast(hints::FileHints& hints) {
  std::string text = first() ? text_of(hints) : std::string();
  std::uint64_t size = text.size();
  if (base::Status status = broadcast(&size, sizeof size, "MPI_File_set_info"); !status) return status;
  text.resize(size);
  if (base::Status status = broadcast(text.data(), size, "MPI_File_set_info"); !status) return status;
  if (!first()) hints = hints_of(text);
  return {};
}

/// A thread of pario's own may use a communicator where the MPI allows that, or where ranks meet in memory only. Its duplicate is made
/// here, because that is collective and starting a call must not wait for others.
base::Status File::make_streams() {
  const bool shared = comm_->size() > 1;
  stream_ = std::make_unique<Stream>(comm_, comm_, request_.path, effective_.pario_memory, call_of(kOpen));
  if (shared && !comm_->thread_safe() && comm_->topology().nodes() > 1) return {};
  comm::Watchdog watch = watchdog(kOpen);
  worker_comm_ = shared ? comm_->duplicate(watch.patience()) : comm_;
  return worker_comm_ ? base::Status() : failure("open");
}

/// Why there is no memory to share; the other nodes learn it when they agree.
base::Status File::failure(const char* call) {
  comm_->fail({.number = ENOMEM, .detail = "no memory to share between ranks"});
  return located(comm_->failure().error(), call);
}

base::Status File::make_common(std::uint64_t number) {
  const int ranks = comm_->local_size();
  comm::Watchdog watch = watchdog(kOpen);
  if (ranks > 1) common_memory_ = comm_->share(common_size(ranks), watch.patience());
  if (ranks > 1 && !common_memory_) return failure("open");
  if (!common_memory_) own_common_ = std::vector<Plain>(2);
  gate_ = std::make_unique<Gate>(common_memory_ ? common_memory_->data() : reinterpret_cast<std::byte*>(own_common_.data()), *comm_,
                                 request_.path);
  if (comm_->topology().nodes() == 1)
    pointer_ = pointer_in_memory(gate_->common().shared_pointer);
  else
    pointer_ = pointer_in_file(request_.path, number);
  return {};
}

/// Before any rank may write.
void File::make_claims(std::uint64_t number) {
  claims_ = std::make_unique<Claims>(*file_, number);
  const bool writes = (request_.flags & O_ACCMODE) != O_RDONLY;
  const bool locks = layout::traits(file_->layout().kind).locks_across_nodes;  // elsewhere nothing is ever written back
  if (writes && locks && comm_->rank() == comm_->leader()) claims_->stay(comm_->node());
}

void File::take_effect(const Opened& opened) {
  readable_ = opened.access != O_WRONLY;
  const layout::StripeLayout layout = comm_->size() == 1 ? file_->layout() : opened.layout;
  effective_.striping_unit = opened.striped ? layout.unit : 0;
  effective_.striping_factor = opened.striped ? layout.targets : 0;
  effective_.pario_subfiles = file_->subfiles();
  if (layout.kind != layout::Kind::lustre) effective_.start_iodevice = kAnyTarget;
  set_terms({.hints = effective_, .layout = layout, .atomic = false, .one_node = comm_->topology().nodes() == 1});
  closed_ = false;
}

}  // namespace pario::engine
