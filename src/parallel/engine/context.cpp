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

void Statistics::count_call(plan::Direction direction, With with, std::uint64_t bytes) {
  const bool together = with == With::together;
  if (direction == plan::Direction::write) {
    ++(together ? collective_writes : independent_writes);
    bytes_written += bytes;
  } else {
    ++(together ? collective_reads : independent_reads);
    bytes_read += bytes;
  }
}

void Statistics::count_transfer(plan::Direction direction, base::Extent where, std::uint64_t moved,
                                std::uint64_t unit) {
  if (direction == plan::Direction::write)
    transfer.add_write(where, unit);
  else
    transfer.add_read(moved);
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
  ++policy_number_;
  hints_ = policy.hints;
  reads_ahead_ =
      policy.may_run_ahead() && policy.one_node && layout::traits(policy.layout.kind).byte_coherent;
  auto replaced = std::make_shared<const AccessPolicy>(std::move(policy));
  const std::scoped_lock lock(policy_mutex_);
  policy_ = std::move(replaced);
}

void FileContext::add(const Statistics& more) {
  const std::scoped_lock lock(statistics_mutex_);
  statistics_ += more;
}

void FileContext::count_run(plan::Direction direction, With with, bool ahead, base::Extent where,
                            const MovedRun& run, std::uint64_t elapsed_ns) {
  const std::scoped_lock lock(statistics_mutex_);
  statistics_.total_ns += elapsed_ns;
  statistics_.transfer.file_ns += elapsed_ns;
  statistics_.count_call(direction, with, run.bytes ? *run.bytes : 0);
  if (run.by_system)
    statistics_.count_transfer(direction, where, *run.by_system, policy_->layout.unit);
  statistics_.direct += ahead ? 1 : 0;
  statistics_.ran_ahead += ahead ? 1 : 0;
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
  return {*comm_, limits(), {.path = path_, .call = call, .say = say}};
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
