// Sorted sets of byte ranges that stay readable while they change.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pario::buffers {

/// Keeps the order of the loads and stores around it, for signal handlers of this thread and for a
/// process that reads shared memory after this one was killed.
inline void signal_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// The valid bytes of a buffer: at most 64 sorted ranges, disjoint and not adjacent. During a
/// change every byte of a range stays in some range: a reader that interrupts the change, or finds
/// the memory of a killed process, sees all bytes, some perhaps twice.
class ByteRanges {
 public:
  struct alignas(8) Range {
    std::uint32_t begin, end;
  };

  /// Adds the bytes from `begin` to `end`. False if there would be too many ranges; nothing
  /// changes.
  bool add(std::uint32_t begin, std::uint32_t end) {
    signal_fence();
    if (count_ != 0 && ranges_[count_ - 1].end == begin) [[likely]] {
      ranges_[count_ - 1].end = end;
      return true;
    }
    return merge(begin, end);
  }
  bool contains(std::uint32_t begin, std::uint32_t end) const {
    for (const Range& range : ranges())
      if (range.begin <= begin && end <= range.end) return true;
    return false;
  }
  bool is_empty() const { return count_ == 0; }
  /// The end of the last range; 0 if there is none.
  std::uint32_t end() const { return count_ == 0 ? 0 : ranges_[count_ - 1].end; }
  std::uint64_t total_bytes() const;
  std::span<const Range> ranges() const { return {ranges_.data(), count_}; }
  void clear() { count_ = 0; }

  // Positions of the members, for readers in another language.
  static constexpr std::size_t ranges_offset() { return offsetof(ByteRanges, ranges_); }
  static constexpr std::size_t count_offset() { return offsetof(ByteRanges, count_); }

 private:
  bool merge(std::uint32_t begin, std::uint32_t end);
  void insert(std::uint32_t index, Range range);
  void set(std::uint32_t index, Range range);

  static constexpr std::uint32_t kMost = 64;
  std::array<Range, kMost> ranges_ = {};
  std::uint32_t count_ = 0;
};

}  // namespace pario::buffers
