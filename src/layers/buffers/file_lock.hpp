// The lock of a buffered file; a signal handler that interrupts its holder does not acquire it.
#pragma once

#include <mutex>
#include <new>

#include "layers/buffers/condition.hpp"

namespace pario::buffers {

/// The mutex of a file and the condition that its state has changed.
class Monitor {
 public:
  /// Resets the mutex in the child of a fork: a thread of the parent may have held it.
  void reset_in_child() { new (this) Monitor; }

 private:
  friend class FileLock;
  std::mutex mutex_;
  Condition changed_;
};

/// The monitor that this thread holds or is about to hold; null: none.
extern constinit thread_local Monitor* held_monitor __attribute__((tls_model("initial-exec")));

/// Holds a monitor during its lifetime. In a signal handler that has interrupted the holder it
/// holds nothing: is_held() is false.
class FileLock {
 public:
  explicit FileLock(Monitor& monitor)
      : monitor_(monitor),
        outer_(held_monitor),
        held_(outer_ != &monitor),
        lock_(monitor.mutex_, std::defer_lock) {
    if (!held_) return;
    held_monitor = &monitor;
    lock_.lock();
  }
  /// Tries to hold the monitor; holds nothing if another thread has it.
  FileLock(Monitor& monitor, std::try_to_lock_t)
      : monitor_(monitor), outer_(held_monitor), lock_(monitor.mutex_, std::defer_lock) {
    held_ = outer_ != &monitor && lock_.try_lock();
    if (held_) held_monitor = &monitor;
  }
  ~FileLock() {
    if (!held_) return;
    lock_.unlock();
    held_monitor = outer_;
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool is_held() const { return held_; }
  /// Releases the monitor until a change is announced. May return early.
  void wait() { monitor_.changed_.wait(lock_); }
  void notify_all() { monitor_.changed_.notify_all(); }

 private:
  Monitor& monitor_;
  Monitor* outer_;
  bool held_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace pario::buffers
