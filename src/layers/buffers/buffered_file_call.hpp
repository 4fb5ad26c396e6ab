// The lock of a buffered file for one call; for the sources of BufferedFile.
#pragma once

#include "layers/buffers/buffered_file.hpp"

namespace pario::buffers {

/// Holds the file's lock, and applies the writes of signal handlers at the end of the call. Holds
/// nothing in a signal handler that has interrupted a call on the same file.
class BufferedFile::Call {
 public:
  explicit Call(BufferedFile& file) : file_(file), lock_(file.monitor_) {}
  ~Call() {
    if (lock_.is_held() && !file_.signal_writes_.is_empty()) [[unlikely]]
      apply_signal_writes();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool is_held() const { return lock_.is_held(); }
  FileLock& lock() { return lock_; }

 private:
  [[gnu::noinline]] void apply_signal_writes();

  BufferedFile& file_;
  FileLock lock_;
};

}  // namespace pario::buffers
