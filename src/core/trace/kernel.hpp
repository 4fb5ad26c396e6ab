// The kernel's counters of this process, kept in the process row while the process runs.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace pario::trace {

struct Process;

/// Delays of a thread or of a process, as the scheduler counts them.
struct Delays {
  std::uint64_t run_queue_ns = 0;  ///< runnable, but waiting for a processor
  std::uint64_t block_io_ns = 0;   ///< waiting for block devices
};

/// Processor time of a process since the tracer started in its image.
struct ProcessorTime {
  std::uint64_t user_ns;
  std::uint64_t system_ns;
};

/// Reads the kernel's counters into the process row. Callers hold the anchor's lock.
class KernelCounters {
 public:
  /// Stores the counters at the start of this image, from which update() counts.
  void begin(Process& row);
  /// Updates the row, if that was not done in the last 0.1 s or `force` is set; an update takes at
  /// most 1 % of the time. Does nothing before begin().
  void update(Process& row, bool force);
  /// Returns the processor time so far, and stores it in the row.
  ProcessorTime read_processor_time(Process& row);
  /// Leaves the processor time since read_processor_time() returned `used` out of all later times:
  /// the tracer needed it, not the program.
  void leave_out_since(const ProcessorTime& used, Process& row);
  /// Leaves this processor time of the tracer out of all later times. Without the anchor's lock.
  void leave_out(std::uint64_t nanoseconds);

 private:
  static constexpr std::size_t kMostThreads = 64;  ///< further threads are left out
  struct Thread {
    std::uint64_t id;
    Delays delays;
  };

  void update_usage(Process& row);
  void update_io(Process& row);
  void update_delays(Process& row);
  /// Returns the delays of all threads so far, ended ones included.
  Delays sum_delays();
  void list_threads();
  Delays read_delays(std::uint64_t thread);
  void keep_delays_of_ended_threads();
  std::string_view read(const char* path);

  bool begun_ = false;
  bool run_queue_known_ = false, block_io_known_ = false;
  std::uint64_t next_ = 0;  // ticks at which an update is due
  rusage usage_at_start_ = {};
  ProcessorTime own_ = {};       // of the tracer at the end
  std::uint64_t own_calls_ = 0;  // of the tracer in the first calls; ns
  Delays delays_at_start_, ended_;
  Thread threads_[kMostThreads] = {}, found_[kMostThreads] = {};
  std::size_t threads_count_ = 0, found_count_ = 0;
  alignas(8) char text_[2048] = {};
};

/// Returns the n-th word of a text, counted from 0; empty if there are fewer.
std::string_view word_of(std::string_view text, std::size_t n);
/// Returns the delay for block devices in clock ticks from the text of /proc/PID/stat.
std::uint64_t block_io_ticks(std::string_view stat);
/// Returns the number after a name in the text of /proc/PID/io.
std::uint64_t number_after(std::string_view text, std::string_view name);

}  // namespace pario::trace
