#include "parallel/engine/kept_writes.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/trace/trace.hpp"

namespace pario::engine {
namespace {

/// Writes whose pieces have a larger mean size get requests of their own.
constexpr std::uint64_t kMeanPiece = 64 << 10;
constexpr std::uint64_t kMostMemory = 64 << 20;  // of a rank for windows
constexpr std::uint64_t kDelayCheckNs = 500'000'000;

/// The files of this process that have kept writes since they were opened. Never destroyed: it is
/// used when the process ends.
struct Registry {
  std::mutex mutex;
  std::set<KeptWrites*> files;
  pid_t process = 0;
};

Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

/// The writes kept so far, and those among them that write_kept_writes() has written: it returns
/// early only if another thread has finished that, not merely begun.
std::atomic<std::uint64_t> kept_count{0}, written_count{0};

/// Writes kept bytes whose delay has passed. Runs in a thread of its own until the process ends.
base::Result<std::uint64_t> watch_delays() {
  const base::FutexWord never_woken{0};
  for (auto& all = registry();;) {
    base::futex_wait(never_woken, 0, kDelayCheckNs);
    const std::scoped_lock lock(all.mutex);
    for (KeptWrites* file : all.files) file->start_old(base::monotonic_ns());
  }
}

void start_delay_thread() {
  static Worker& thread = *new Worker;  // ends with the process
  static_cast<void>(thread.submit(std::make_shared<Task>(watch_delays)));
}

/// Prints a lost write even if messages are off: no later call can report it.
void print_lost_write(const char* reason, const base::Error& error) {
  const std::string text = std::string("pario: ") + reason + error.text() + "\n";
  static_cast<void>(base::system_call(SYS_write, STDERR_FILENO, text.data(), text.size()));
}

/// Writes all kept bytes in MPI_Finalize and in exit(3). Does nothing in a forked child, whose
/// copies the parent writes.
void save_all_at_end() {
  auto& all = registry();
  if (all.process != ::getpid()) return;
  const trace::Guard guard(trace::Guard::Kind::mpiio);
  const std::scoped_lock lock(all.mutex);
  for (KeptWrites* file : all.files)
    if (const base::Status saved = file->save(); !saved)
      print_lost_write("the program has ended, and ", saved.error());
}

}  // namespace

void write_kept_writes(Reader reader) {
  const std::uint64_t kept = kept_count.load();
  if (reader == Reader::ranks && written_count.load() >= kept) return;
  const trace::Guard guard(trace::Guard::Kind::mpiio);
  auto& all = registry();
  const std::scoped_lock lock(all.mutex);
  for (KeptWrites* file : all.files)
    reader == Reader::ranks ? file->flush_for_others() : file->flush();
  written_count.store(std::max(kept, written_count.load()));
}

KeptWrites::~KeptWrites() {
  unregister();
  if (const base::Status saved = save(); !saved)
    print_lost_write("no later call can report this error: ", saved.error());
}

/// Adds the object to the registry. Called before a write is kept.
void KeptWrites::register_once() {
  if (registered_.exchange(true)) return;
  auto& all = registry();
  const std::scoped_lock lock(all.mutex);
  if (all.process != ::getpid()) {
    std::atexit(save_all_at_end);
    comm::work_in_finalize(save_all_at_end);
    start_delay_thread();
  }
  all.process = ::getpid();
  all.files.insert(this);
}

void KeptWrites::unregister() {
  if (!registered_) return;
  auto& all = registry();
  const std::scoped_lock lock(all.mutex);
  all.files.erase(this);
}

bool KeptWrites::share_windows(std::uint64_t unit, const comm::Patience& patience) {
  comm::Comm& comm = context_.comm();
  const std::uint64_t bound = std::min(context_.hints().pario_write_behind, kMostMemory);
  if (bound == 0 || comm.size() == 1 || comm.topology().nodes() > 1) return true;
  const NodeWindows::Sizes sizes =
      NodeWindows::choose_sizes(bound * static_cast<std::uint64_t>(comm.size()), unit);
  memory_ = comm.share(NodeWindows::memory_size(sizes), patience);
  if (!memory_) return false;
  if (context_.is_first()) NodeWindows::initialise(memory_->data(), sizes);
  const auto write = [this](const pattern::Access& access) {
    errors_.put_error(write_kept_bytes(context_, access));
  };
  windows_ = std::make_unique<NodeWindows>(memory_->data(), sizes, write);
  return true;
}

void KeptWrites::watch_windows() {
  if (windows_) register_once();
}

bool KeptWrites::keeps(plan::Direction direction, const pattern::Access& access,
                       const pattern::Summary& summary, const AccessPolicy& policy) const {
  const std::uint64_t bound = policy.hints.pario_write_behind;
  if (direction != plan::Direction::write || policy.atomic || summary.bytes == 0 || bound == 0 ||
      summary.bytes > kMeanPiece * summary.pieces)
    return false;
  return windows_ ? NodeWindows::can_keep(access) : KeptBytes::memory_for(summary) <= bound / 2;
}

bool KeptWrites::merges(plan::Direction direction, const AccessPolicy& policy) {
  return direction == plan::Direction::write && !policy.atomic &&
         policy.hints.pario_merge_collectives > 0;
}

void KeptWrites::add(const pattern::Access& access, const pattern::Summary& summary,
                     const AccessPolicy& policy) {
  register_once();
  if (windows_)
    windows_->add(access);
  else
    behind_.add(access, summary, policy.hints.pario_write_behind);
  context_.set_changed();  // another rank may write the bytes of a window
  ++kept_count;
}

base::Status KeptWrites::write_own_merged() {
  const KeptBytes::Batch batch = merged_.take_own();
  return batch.access.bytes == 0 ? base::Status() : write_kept_bytes(context_, batch.access);
}

base::Status KeptWrites::flush_overlapping_merged(base::Extent span) {
  return used() && merged_.overlaps(span) ? write_own_merged() : base::Status();
}

void KeptWrites::flush_overlapping(base::Extent span) {
  if (!used()) return;
  if (windows_) return windows_->flush_overlapping(span);
  if (behind_.overlaps(span)) behind_.flush();
}

void KeptWrites::flush() {
  if (windows_)
    windows_->flush();
  else if (used())
    behind_.flush();
}

void KeptWrites::flush_for_others() {
  if (!windows_) flush();
}

void KeptWrites::start_old(std::uint64_t now) {
  const std::uint64_t delay_s = context_.policy()->hints.pario_write_behind_delay;
  const std::uint64_t delay_ns = delay_s * 1'000'000'000;
  if (delay_s == 0) return;
  if (!windows_) return behind_.start_old(delay_ns, now);
  if (now < delay_ns || window_worker_.count_unfinished() > 0) return;
  const auto task = std::make_shared<Task>([this, until = now - delay_ns] {
    windows_->flush_older(until);
    return base::Result<std::uint64_t>(0);
  });
  if (!window_worker_.submit(task)) task->run();
}

base::Status KeptWrites::save() {
  if (!used()) return {};
  flush();
  errors_.put_error(write_own_merged());
  return errors_.take_error();
}

std::uint64_t KeptWrites::end() const {
  if (!used()) return 0;
  return std::max(windows_ ? windows_->end() : behind_.end(), merged_.end());
}

bool KeptWrites::fits_merged(std::span<const pattern::Summary> ranks,
                             const AccessPolicy& policy) const {
  return merged_.fits(ranks, policy.hints.pario_merge_collectives);
}

KeptBytes::Batch KeptWrites::take_all() {
  if (!used()) return {};
  const KeptBytes::Batch behind = behind_.take_all();
  if (behind.access.bytes != 0) merged_.add_own(behind);
  return merged_.take_all();
}

void KeptWrites::add_merged(const pattern::Access& access, base::Extent span,
                            std::span<const pattern::Summary> ranks) {
  register_once();
  merged_.add(access, span, ranks);
}

}  // namespace pario::engine
