// The life cycle of a process log: start, fork, the moving anchor, finish.
#include <ctime>
#include <memory>

#include "core/trace/schema.hpp"
#include "core/trace/state.hpp"

namespace pario::trace {
namespace {

constexpr std::uint64_t kEndExec = 3;  // end_kind (process.def)
constexpr std::size_t kSchemaRoom = 256 << 10;
// Ns between the anchors from which on the measured rate is better than the first guess.
constexpr std::uint64_t kRateNeeds = 1'000'000;
constexpr std::uint64_t kAnchorsPerSecond = 10;
// A process that ends finishes twice, at exit and by the destructor of the library: soon after the
// first time the counters are the same.
constexpr std::uint64_t kFinishesPerSecond = 1000;
// Short programs make fewer calls; two looks at a clock for each cost 1 % of the tracer's start.
constexpr int kFirstCalls = 128;
constexpr int kStatusBits = 0xFF;  // bits of an exit status that the kernel keeps
constexpr std::uint64_t kRateNotKnownYet =
    1'000'000'000;  // readers see it if the process is killed during its start

/// The arguments of start(); a forked child starts with them, too.
struct Settings {
  char directory[2048];
  Config config;
  std::uint64_t ticks_per_second;
  std::span<const FunctionInfo> functions;
};
constinit Settings settings{};

/// Stores the absolute path: the program may change its directory before it forks.
void keep_directory(std::string_view directory) {
  base::TextBuffer out(settings.directory, sizeof settings.directory);
  char cwd[1024];
  if (!directory.starts_with('/') && base::read_working_directory(cwd, sizeof cwd) > 0)
    out.add(cwd).add('/');
  out.add(directory).c_str();
}

void begin_process_row(Process& row) {
  row.pid = static_cast<std::uint64_t>(base::system_call(SYS_getpid));
  row.ppid = static_cast<std::uint64_t>(base::system_call(SYS_getppid));
  row.ticks_per_second = settings.ticks_per_second;
  const base::Anchor now = base::anchor();
  row.start_mono_ns = row.anchor0_mono_ns = row.anchor1_mono_ns = now.ns;
  row.anchor0_ticks = row.anchor1_ticks = now.ticks;
}

bool write_schema_block() {
  std::byte* memory = base::map_memory(kSchemaRoom);
  if (memory == nullptr) return false;
  auto* header = new (memory) BlockHeader{};
  base::TextBuffer text(reinterpret_cast<char*>(header->payload()),
                        kSchemaRoom - sizeof(BlockHeader));
  write_schema(text, settings.functions);
  header->kind = BlockKind::schema;
  header->used = text.view().size();
  header->count = 1;
  const bool written = text.complete() && state.log.append(header) == 0;
  base::unmap(memory, kSchemaRoom);
  return written;
}

bool begin_log(std::uint64_t start_realtime_ns) {
  BlockHeader* block = state.log.reserve(BlockKind::process, sizeof(Process));
  if (block == nullptr) return false;
  block->count = 1;
  block->used = sizeof(Process);
  state.process = new (block->payload()) Process{};
  begin_process_row(*state.process);
  state.process->start_realtime_ns = start_realtime_ns;
  return write_schema_block() && state.records.begin(state.log, settings.config.files_limit);
}

void complain(long error) {
  base::Text<2300> text;
  text.add("no trace: cannot write to ")
      .add(settings.directory)
      .add(": ")
      .add(base::errno_text(static_cast<int>(-error)));
  say(text.view());
}

/// Resets the state (in a child it is the parent's) and begins a new log.
bool open_log() {
  if (on()) state.log.abandon();
  detail::context.slot = nullptr;
  detail::context.calls = nullptr;
  std::destroy_at(&state);
  std::construct_at(&state);
  const std::uint64_t start = base::realtime_ns();
  if (const int error = state.log.open(settings.directory, start); error != 0) {
    complain(error);
    return false;
  }
  state.threads.begin(settings.functions.size(), settings.config.events_limit != 0);
  state.events.begin(settings.config.events_limit);
  state.sites.begin(settings.config.sites);
  if (begin_log(start)) return true;
  const int trouble = state.log.take_trouble();
  complain(trouble != 0 ? trouble : -ENOSPC);
  state.process = nullptr;
  state.log.discard();
  return false;
}

void use_rate(Process& row, std::uint64_t now, std::uint64_t now_ns) {
  const std::uint64_t passed = now_ns - row.anchor0_mono_ns;
  if (passed < kRateNeeds) return;
  const auto rate = static_cast<std::uint64_t>(
      static_cast<unsigned __int128>(now - row.anchor0_ticks) * 1'000'000'000 / passed);
  std::atomic_ref(row.ticks_per_second).store(rate, std::memory_order_relaxed);
}

/// Begins the kernel's counters behind the tracer's own reads at the start.
void begin_kernel_counters() {
  const base::SpinLock lock(state.anchor_lock);
  detail::first_calls.store(kFirstCalls, std::memory_order_relaxed);
  state.kernel.begin(process());
}

/// Returns the processor time so far.
ProcessorTime read_processor_time() {
  const base::SpinLock lock(state.anchor_lock);
  return state.kernel.read_processor_time(process());
}

/// The row keeps the time of the program, because the last work of the tracer is not the program's.
void leave_out_since(const ProcessorTime& used) {
  const base::SpinLock lock(state.anchor_lock);
  state.kernel.leave_out_since(used, process());
}

/// Reports that the log is full. Called without locks.
void report_full_log() {
  const int error = state.log.take_trouble();
  if (error == 0) return;
  base::Text<512> text;
  text.add("the trace of process ").add(process().pid).add(" is incomplete, its log cannot grow: ");
  message(text.add(base::errno_text(-error)).add(". Counting goes on, less finely.").view());
}

/// Writes the last chunks of this thread and of ended threads; a running thread keeps its events in
/// its tail. `shrink`: the process ends soon. It does not after a failed exec, which a forked child
/// hardly ever continues.
void end_events(bool shrink) {
  if (!state.events.on()) return;
  const auto end = [&](Slot& slot) {
    state.events.flush(slot);
    if (shrink) Threads::shrink(slot, state.log);
  };
  if (detail::context.slot != nullptr) end(*detail::context.slot);
  state.threads.for_each_free(end);
}

/// The last work on the log. It takes locks, so the thread must not be inside the tracer.
void complete_log(Process& row, std::uint64_t end_kind) {
  const Inside inside;
  if (row.end != 0 && ticks() - row.end < tick_rate() / kFinishesPerSecond)
    return end_events(false);
  const ProcessorTime used = read_processor_time();
  if (settings.config.at_end != nullptr) settings.config.at_end();
  end_events(end_kind != kEndExec || row.parent_image != 0);
  refresh_anchor(true);
  leave_out_since(used);
}

}  // namespace

std::span<const FunctionInfo> functions() { return settings.functions; }

void say(std::string_view text) {
  if (!settings.config.messages) return;
  base::Text<2400> line;
  base::say(line.add("pario: ").add(text).add('\n').view());
}

namespace {

/// Moves the second anchor to now; false if another thread does.
bool move_anchor(bool force) {
  if (std::atomic_ref(state.anchor_lock).exchange(1, std::memory_order_acquire) != 0) return false;
  Process& row = process();
  const auto [now, now_ns] = base::anchor();
  row.anchor1_ticks = now;
  row.anchor1_mono_ns = now_ns;
  use_rate(row, now, now_ns);
  state.kernel.update(row, force);
  std::atomic_ref(state.next_anchor)
      .store(now + row.ticks_per_second / kAnchorsPerSecond, std::memory_order_relaxed);
  std::atomic_ref(state.anchor_lock).store(0, std::memory_order_release);
  report_full_log();
  return true;
}

}  // namespace

void refresh_anchor(bool force) {
  if (move_anchor(force) && settings.config.at_anchor != nullptr) settings.config.at_anchor();
}

void start(const Config& config, std::span<const FunctionInfo> functions) {
  if (config.directory == nullptr || config.directory[0] == 0) return;
  const base::SavedErrno saved;
  const Inside inside;
  keep_directory(config.directory);
  settings.config = config;
  settings.functions = functions;
  settings.ticks_per_second = kRateNotKnownYet;
  base::choose_clock();
  if (!open_log()) return;
  std::atomic_ref(state.on).store(true, std::memory_order_release);
  write_process_note(settings.config.arguments);
  process().ticks_per_second = base::tick_rate(
      {process().anchor0_ticks, process().anchor0_mono_ns});  // includes the time up to now
  begin_kernel_counters();
  refresh_anchor();
}

void restart_after_fork() {
  if (!on()) return;
  const Inside inside;
  settings.ticks_per_second = process().ticks_per_second;
  if (!open_log()) return;
  process().parent_image = 1;
  std::atomic_ref(state.on).store(true, std::memory_order_release);
  write_process_note(settings.config.arguments);
  begin_kernel_counters();
  move_anchor(false);
}

constinit std::atomic<int> detail::first_calls{0};

std::uint64_t detail::thread_time() {
  timespec time{};
  static_cast<void>(base::system_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time));
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void detail::leave_out_first_call(std::uint64_t begin) {
  first_calls.fetch_sub(1, std::memory_order_relaxed);
  const std::uint64_t now = thread_time();
  state.kernel.leave_out(now - std::min(now, begin));
}

void finish(std::uint64_t end_kind, int end_code) {
  if (!on()) return;
  Process& row = process();
  if (!detail::inside_tracer()) complete_log(row, end_kind);
  row.end = ticks();
  row.end_kind = end_kind;
  row.end_code = static_cast<std::uint64_t>(end_code & kStatusBits);
}

}  // namespace pario::trace
