#include "core/trace/kernel.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>

#include "core/base/base.hpp"
#include "core/trace/state.hpp"

namespace pario::trace {
namespace {

constexpr std::uint64_t kUpdatesPerSecond = 10;
constexpr std::uint64_t kCostShare = 100;           // an update takes at most this part of the time
constexpr std::uint64_t kBlock = 512;               // unit of ru_inblock and ru_oublock
constexpr std::uint64_t kClockTickNs = 10'000'000;  // of /proc/PID/stat: always 1/100 s
constexpr std::size_t kDelayField = 39;  // of /proc/PID/stat, counted from 0 behind the name

std::uint64_t nanoseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_usec) * 1000;
}

bool read_usage(rusage& usage) {
  return base::system_call(SYS_getrusage, RUSAGE_SELF, &usage) == 0;
}

/// Returns the growth of a number of the kernel; 0 if it has become smaller.
std::uint64_t growth(long now, long before) {
  return static_cast<std::uint64_t>(std::max(now - before, 0L));
}

/// Returns the number of processors that this process may use.
std::uint64_t count_processors() {
  constexpr std::size_t kWords = 16384 / 64;  // the kernel's limit of processors is 8192
  std::uint64_t mask[kWords] = {};
  const long size = base::system_call(SYS_sched_getaffinity, 0, sizeof mask, mask);
  std::uint64_t count = 0;
  for (long i = 0; i < size / static_cast<long>(sizeof *mask); ++i)
    count += static_cast<std::uint64_t>(__builtin_popcountll(mask[i]));
  return count;
}

/// Returns the bytes of the machine's memory.
std::uint64_t find_memory() {
  struct sysinfo facts{};
  if (base::system_call(SYS_sysinfo, &facts) < 0) return 0;
  return static_cast<std::uint64_t>(facts.totalram) * facts.mem_unit;
}

/// Stores an optional number (process.def).
void store_known(std::uint64_t& field, std::uint64_t value) {
  std::atomic_ref(field).store(value + 1, std::memory_order_relaxed);
}

/// The path of a file about a thread of this process.
class ThreadPath {
 public:
  ThreadPath(std::uint64_t thread, const char* file) {
    text_.add("/proc/self/task/").add(thread).add('/').add(file);
  }
  const char* c_str() { return text_.c_str(); }

 private:
  base::Text<64> text_;
};

}  // namespace

std::string_view word_of(std::string_view text, std::size_t n) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n'; };
  const auto* at = text.begin();
  for (;; --n) {
    at = std::find_if_not(at, text.end(), is_space);
    const auto* end = std::find_if(at, text.end(), is_space);
    if (n == 0 || at == text.end()) return {at, end};
    at = end;
  }
}

std::uint64_t block_io_ticks(std::string_view stat) {
  const auto name_end = stat.rfind(')');  // the name of the program may hold anything
  return name_end == stat.npos
             ? 0
             : base::leading_number(word_of(stat.substr(name_end + 1), kDelayField));
}

std::uint64_t number_after(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  return at == text.npos ? 0 : base::leading_number(word_of(text.substr(at + name.size()), 0));
}

std::string_view KernelCounters::read(const char* path) {
  const long size = read_own_file(path, text_, sizeof text_);
  return {text_, size > 0 ? static_cast<std::size_t>(size) : 0};
}

void KernelCounters::begin(Process& row) {
  row.processors = count_processors();
  row.memory = find_memory();
  block_io_known_ = read("/proc/sys/kernel/task_delayacct").starts_with('1');
  run_queue_known_ = !read("/proc/self/schedstat").empty();
  delays_at_start_ = sum_delays();
  begun_ = true;
  update_io(row);
  // The update's own call on /proc/self/io is not in the counters that it has read.
  row.tracer_reads = row.tracer_bytes_read = row.tracer_writes = row.tracer_bytes_written = 0;
  const auto before = [](std::uint64_t known) { return known == 0 ? 0 : known - 1; };
  row.syscalls_read_before = before(row.syscalls_read);
  row.syscalls_write_before = before(row.syscalls_write);
  row.kernel_read_before = before(row.kernel_read);
  row.kernel_written_before = before(row.kernel_written);
  next_ = ticks() + tick_rate() / kUpdatesPerSecond;
  own_ = {};
  own_calls_ = 0;
  read_usage(usage_at_start_);  // the last: the tracer's own start is not the program's
}

void KernelCounters::update(Process& row, bool force) {
  const std::uint64_t start = ticks();
  if (!begun_ || (!force && start < next_)) return;
  update_usage(row);
  update_io(row);
  update_delays(row);
  const std::uint64_t end = ticks();
  next_ = end + std::max(tick_rate() / kUpdatesPerSecond, kCostShare * (end - start));
}

ProcessorTime KernelCounters::read_processor_time(Process& row) {
  update_usage(row);
  return {row.cpu_user_ns, row.cpu_system_ns};
}

void KernelCounters::leave_out_since(const ProcessorTime& used, Process& row) {
  const auto [user, system] = read_processor_time(row);
  own_.user_ns += user - std::min(user, used.user_ns);
  own_.system_ns += system - std::min(system, used.system_ns);
  row.cpu_user_ns = used.user_ns;
  row.cpu_system_ns = used.system_ns;
}

void KernelCounters::leave_out(std::uint64_t nanoseconds) {
  std::atomic_ref(own_calls_).fetch_add(nanoseconds, std::memory_order_relaxed);
}

void KernelCounters::update_usage(Process& row) {
  rusage usage{};
  if (!read_usage(usage)) return;
  const rusage& before = usage_at_start_;
  const auto since = [](timeval now, timeval start, std::uint64_t own) {
    const std::uint64_t all = nanoseconds(now) - nanoseconds(start);
    return all - std::min(all, own);
  };
  const std::uint64_t user = since(usage.ru_utime, before.ru_utime, own_.user_ns);
  const std::uint64_t system = since(usage.ru_stime, before.ru_stime, own_.system_ns);
  const std::uint64_t calls = std::atomic_ref(own_calls_).load(std::memory_order_relaxed);
  const std::uint64_t faults = std::min(system, calls);  // most of it is in the kernel
  row.cpu_user_ns = user - std::min(user, calls - faults);
  row.cpu_system_ns = system - faults;
  row.major_faults = growth(usage.ru_majflt, before.ru_majflt);
  row.minor_faults = growth(usage.ru_minflt, before.ru_minflt);
  row.max_rss = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  if (row.kernel_read == 0) return;  // the kernel does not count I/O
  store_known(row.storage_read, growth(usage.ru_inblock, before.ru_inblock) * kBlock);
  store_known(row.storage_write, growth(usage.ru_oublock, before.ru_oublock) * kBlock);
}

void KernelCounters::update_io(Process& row) {
  const std::string_view text = read("/proc/self/io");
  if (text.empty()) return;
  store_known(row.kernel_read, number_after(text, "rchar: "));
  store_known(row.kernel_written, number_after(text, "wchar: "));
  store_known(row.syscalls_read, number_after(text, "syscr: "));
  store_known(row.syscalls_write, number_after(text, "syscw: "));
}

void KernelCounters::update_delays(Process& row) {
  if (!run_queue_known_ && !block_io_known_) return;
  const Delays now = sum_delays(), before = delays_at_start_;
  const auto since = [](std::uint64_t a, std::uint64_t b) { return a - std::min(a, b); };
  if (run_queue_known_)
    store_known(row.run_queue_delay, since(now.run_queue_ns, before.run_queue_ns));
  if (block_io_known_) store_known(row.block_io_delay, since(now.block_io_ns, before.block_io_ns));
}

Delays KernelCounters::sum_delays() {
  list_threads();
  for (Thread& thread : std::span(found_, found_count_)) thread.delays = read_delays(thread.id);
  keep_delays_of_ended_threads();
  std::copy_n(found_, found_count_, threads_);
  threads_count_ = found_count_;
  Delays sum = ended_;
  for (const Thread& thread : std::span(threads_, threads_count_)) {
    sum.run_queue_ns += thread.delays.run_queue_ns;
    sum.block_io_ns += thread.delays.block_io_ns;
  }
  return sum;
}

void KernelCounters::list_threads() {
  found_count_ = 0;
  if (base::single_threaded()) {  // most short processes; the list takes four system calls
    found_[found_count_++] = {static_cast<std::uint64_t>(base::system_call(SYS_gettid)), {}};
    return;
  }
  const int directory = base::open_file("/proc/self/task", O_RDONLY | O_DIRECTORY);
  if (directory < 0) return;
  long size = 0;
  while (found_count_ < kMostThreads &&
         (size = base::read_entries(directory, text_, sizeof text_)) > 0)
    for (long at = 0; at < size && found_count_ < kMostThreads;) {
      const auto* entry = reinterpret_cast<const dirent64*>(text_ + at);
      if (const std::uint64_t id = base::leading_number(entry->d_name))
        found_[found_count_++] = {id, {}};
      at += entry->d_reclen;
    }
  base::close_file(directory);
}

Delays KernelCounters::read_delays(std::uint64_t thread) {
  Delays delays;
  if (run_queue_known_)
    delays.run_queue_ns =
        base::leading_number(word_of(read(ThreadPath(thread, "schedstat").c_str()), 1));
  if (block_io_known_)
    delays.block_io_ns = block_io_ticks(read(ThreadPath(thread, "stat").c_str())) * kClockTickNs;
  return delays;
}

void KernelCounters::keep_delays_of_ended_threads() {
  const auto lives = [&](const Thread& thread) {
    return std::any_of(found_, found_ + found_count_, [&](const Thread& other) {
      return other.id == thread.id && other.delays.run_queue_ns >= thread.delays.run_queue_ns;
    });
  };
  for (const Thread& thread : std::span(threads_, threads_count_)) {
    if (lives(thread)) continue;
    ended_.run_queue_ns += thread.delays.run_queue_ns;
    ended_.block_io_ns += thread.delays.block_io_ns;
  }
}

}  // namespace pario::trace
