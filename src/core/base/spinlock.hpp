// A spin lock for critical sections of a few instructions, in any word of memory.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

// glibc 2.32 and later.
extern "C" char __libc_single_threaded __attribute__((weak));

namespace pario::base {

/// True if the process has one thread, and only this thread can change that: plain operations may
/// then replace atomic ones.
inline bool single_threaded() {
  return &__libc_single_threaded != nullptr && __libc_single_threaded != 0;
}

/// compare_exchange_strong of a word; in a process of one thread atomic only with respect to signal
/// handlers, at a third of the cost.
template <class Word>
bool replace_if(std::atomic<Word>& word, Word expected, Word desired) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  static_assert(sizeof(word) == sizeof(Word));
  if (single_threaded()) {
    bool replaced;
    asm volatile("cmpxchg %[desired], %[word]"
                 : "=@ccz"(replaced), "+a"(expected), [word] "+m"(reinterpret_cast<Word&>(word))
                 : [desired] "r"(desired)
                 : "memory");
    return replaced;
  }
#endif
  return word.compare_exchange_strong(expected, desired, std::memory_order_acq_rel);
}

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until a word is 0; yields the processor after a while, because the owner may be
/// descheduled.
void wait_for_zero(std::uint64_t& word);

/// Locks `word` (0: free, 1: locked) during its life.
class SpinLock {
 public:
  explicit SpinLock(std::uint64_t& word) : word_(word) {
    if (single_threaded() && word_ == 0) [[likely]]
      word_ = 1;
    else
      while (std::atomic_ref(word_).exchange(1, std::memory_order_acquire) != 0)
        wait_for_zero(word_);
  }
  ~SpinLock() { std::atomic_ref(word_).store(0, std::memory_order_release); }
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

 private:
  std::uint64_t& word_;
};

}  // namespace pario::base
