#include "parallel/engine/context.hpp"

#include <map>

#include "parallel/engine/report.hpp"

namespace pario::engine {

Statistics& Statistics::operator+=(const Statistics& other) {
#define PARIO_TIMER(member, name) member += other.member;
#define PARIO_COUNTER(name) name += other.name;
#define PARIO_DERIVED(name, value)
#include "parallel/engine/statistics.def"
#undef PARIO_TIMER
#undef PARIO_COUNTER
#undef PARIO_DERIVED
  transfer += other.transfer;
  return *this;
}

bool visible_at_once(const AccessPolicy& policy) {
  const layout::Traits& traits = layout::traits(policy.layout.kind);
  const bool merges = policy.hints.pario_merge_collectives > 0 && !policy.atomic;
  return !merges && (policy.one_node || (traits.byte_coherent && traits.locks_across_nodes));
}

std::shared_ptr<std::shared_mutex> process_lock(const std::string& path) {
  // Never destroyed: threads may outlive main().
  static auto* mutex = new std::mutex;
  static auto* locks = new std::map<std::string, std::weak_ptr<std::shared_mutex>>;
  const std::scoped_lock lock(*mutex);
  std::erase_if(*locks, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<std::shared_mutex> found = (*locks)[path].lock();
  if (!found) (*locks)[path] = found = std::make_shared<std::shared_mutex>();
  return found;
}

FileContext::FileContext(std::shared_ptr<comm::Comm> comm, const OpenRequest& request)
    : comm_(std::move(comm)),
      path_(request.path),
      interrupt_(request.interrupt),
      hints_(request.hints),
      guards_{.threads = process_lock(path_)} {}

std::shared_ptr<const AccessPolicy> FileContext::policy() const {
  const std::scoped_lock lock(policy_mutex_);
  return policy_;
}

void FileContext::set_policy(AccessPolicy policy) {
  hints_ = policy.hints;
  auto replaced = std::make_shared<const AccessPolicy>(std::move(policy));
  const std::scoped_lock lock(policy_mutex_);
  policy_ = std::move(replaced);
}

void FileContext::add(const Statistics& more) {
  const std::scoped_lock lock(statistics_mutex_);
  statistics_ += more;
}

Statistics FileContext::statistics() const {
  const std::scoped_lock lock(statistics_mutex_);
  return statistics_;
}

void FileContext::note_windows(std::uint64_t bytes, std::uint64_t nodes) {
  const std::scoped_lock lock(statistics_mutex_);
  windows_.bytes = std::max(windows_.bytes, bytes);
  windows_.nodes = std::max(windows_.nodes, nodes);
}

UsedWindows FileContext::used_windows() const {
  const std::scoped_lock lock(statistics_mutex_);
  return windows_;
}

comm::WaitLimits FileContext::limits() const {
  return {hints_.pario_watchdog, hints_.pario_patience, hints_.pario_silence, interrupt_};
}

Call FileContext::describe_call(const char* name, std::uint64_t check) const {
  return {.name = name, .check = check, .limits = limits()};
}

comm::Watchdog FileContext::watchdog(const char* call) const {
  return {*comm_, *comm_, limits(), {.path = path_, .call = call, .say = say}};
}

comm::Patience FileContext::patience() const {
  return {.progress = [comm = comm_] { comm->progress(); }};
}

base::Error FileContext::complete_error(base::Error error, const char* call) const {
  if (*error.operation == 0) error.operation = call;
  if (error.path.empty()) error.path = path_;
  if (error.rank < 0) error.rank = comm_->rank();
  return error;
}

base::Status FileContext::broadcast(void* data, std::size_t size, const char* call) const {
  if (comm_->size() == 1 || size == 0) return {};
  comm::Watchdog watch = watchdog(call);
  const base::Status status = comm_->broadcast(data, size, 0, watch.patience());
  return status ? status : complete_error(status.error(), call);
}

}  // namespace pario::engine
