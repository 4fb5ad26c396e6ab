// A buffer: a window of a file, and which of its bytes have been written. No locks: it belongs to a File, or to the writer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/base.hpp"

namespace pario::stream {

struct Handle;
class File;

/// What stands before in the text is in memory before what follows, for whoever interrupts or outlives this thread.
inline void in_this_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// Sorted, disjoint, not touching runs of bytes of a window; a bounded number of them. While they change, no byte that was in one is in
/// none: whoever looks at them when the process has been interrupted or killed sees all, some perhaps twice.
class Runs {
 public:
  struct alignas(8) Run {
    std::uint32_t begin, end;
  };

  /// False: there would be too many, nothing is changed.
  bool add(std::uint32_t begin, std::uint32_t end) {
    in_this_order();
    if (count_ != 0 && runs_[count_ - 1].end == begin) [[likely]] {
      runs_[count_ - 1].end = end;
      return true;
    }
    return merge(begin, end);
  }
  bool contains(std::uint32_t begin, std::uint32_t end) const;
  bool empty() const { return count_ == 0; }
  std::uint32_t end() const { return count_ == 0 ? 0 : runs_[count_ - 1].end; }
  std::uint64_t bytes() const;
  std::span<const Run> all() const { return {runs_.data(), count_}; }
  void clear() { count_ = 0; }

  // For readers of another language.
  static constexpr std::size_t runs_at() { return offsetof(Runs, runs_); }
  static constexpr std::size_t count_at() { return offsetof(Runs, count_); }

 private:
  bool merge(std::uint32_t begin, std::uint32_t end);
  void insert(std::uint32_t at, Run run);
  void set(std::uint32_t at, Run run);

  static constexpr std::uint32_t kMost = 64;
  std::array<Run, kMost> runs_ = {};
  std::uint32_t count_ = 0;
};

struct Buffer {
  /// filling, queued: holds what the program has written. reading, ready: holds what was read ahead.
  enum class State : std::uint8_t { empty, filling, queued, reading, ready };

  /// Who writes a queued one: nobody yet, the writer, nobody any more, or the thread that ends the process.
  enum class Hand : std::uint8_t { none, writer, written, rescue };

  bool dirty() const { return state == State::filling || state == State::queued; }
  bool ahead() const { return state == State::reading || state == State::ready; }

  bool full(std::uint64_t size) const { return written.all().size() == 1 && written.all()[0].begin == 0 && written.end() == size; }

  std::byte* memory = nullptr;
  File* file = nullptr;
  Handle* through = nullptr;  ///< whose descriptor it is written by
  Buffer* next = nullptr;     ///< in the writer's queue
  std::uint64_t begin = 0;    ///< of the window; of a buffer that appends: where its first byte is supposed to come
  std::uint64_t since = 0;    ///< when its first byte was written, ns
  State state = State::empty;
  std::atomic<Hand> hand = Hand::none;
  Runs written = {};        ///< of what was read ahead: the bytes that are there
  std::uint64_t asked = 0;  ///< of those, how many were asked for
};

}  // namespace pario::stream
