// Windows of a file in memory that the ranks of a node share: their small independent writes fill
// the same windows, so that full blocks reach the file.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/pattern/pattern.hpp"

namespace pario::engine {

/// The kept bytes of all ranks of a node. The rank that completes a window writes it. If memory is
/// short, the oldest window is written with its holes. Thread-safe, and safe between processes.
///
/// A rank may be killed at any time: the others continue, and every byte that it had copied reaches
/// the file.
class NodeWindows {
 public:
  /// Windows begin at multiples of `window` bytes; `buffers` of them have memory at a time.
  struct Sizes {
    std::uint64_t window = 0;
    std::uint32_t buffers = 0;
  };
  /// Writes kept bytes to the file; takes care of errors itself. It must not use this object.
  using Write = std::function<void(const pattern::Access& access)>;

  /// `bound`: bytes of memory for all ranks; `unit`: bytes of a stripe or block of the file.
  static Sizes choose_sizes(std::uint64_t bound, std::uint64_t unit);
  static std::size_t memory_size(Sizes sizes);
  /// Called by one rank before any other uses the zeroed `memory` of memory_size() bytes.
  static void initialise(std::byte* memory, Sizes sizes);

  /// `memory` must outlive the object, and be aligned to a page.
  NodeWindows(std::byte* memory, Sizes sizes, Write write);

  /// True if add() can keep the bytes of a write: they are in the order of the file.
  static bool can_keep(const pattern::Access& access);
  /// Copies the bytes of a write. Later bytes of a rank replace earlier ones at the same place.
  void add(const pattern::Access& access);
  /// Writes all bytes that were added before the call.
  void flush();
  /// Writes the windows with bytes in `span`.
  void flush_overlapping(base::Extent span);
  /// Writes windows whose first byte was added before that time of base::monotonic_ns().
  void flush_older(std::uint64_t time_ns);
  /// The end of the last kept byte; 0: no byte is kept.
  std::uint64_t end() const;

 private:
  /// The place of every window whose number modulo the number of slots is the slot's. The lock
  /// protects the bytes; the atomics can be read without it.
  struct alignas(64) Slot {
    pthread_mutex_t mutex;
    std::atomic<std::uint64_t> number;    ///< of the window, + 1; 0: none
    std::atomic<std::uint64_t> end;       ///< of its last byte in the file
    std::atomic<std::uint64_t> since_ns;  ///< when its first byte was added
    std::uint64_t bytes;                  ///< added; more than are written if some were replaced
    std::atomic<std::uint32_t> buffer;    ///< number + 1; 0: none
  };
  class Lock;

  Slot& slot_of(std::uint64_t number) const { return slots_[number % slots_.size()]; }
  base::Extent extent_of(const Slot& slot) const;
  std::span<std::uint64_t> words_of(const Slot& slot) const;
  std::byte* image_of(const Slot& slot) const;

  std::uint64_t add_to_window(const pattern::Access& access, pattern::Walker& walker,
                              std::uint64_t position);
  bool claim(Slot& slot, std::uint64_t number);
  bool take_buffer(Slot& slot);
  void map_pages(const Slot& slot, std::uint64_t bytes);
  void release(Slot& slot);
  void recover(Slot& slot);
  bool is_full(Slot& slot) const;
  void write_out(Slot& slot);
  void flush_slot(Slot& slot, std::uint64_t number);
  void flush_oldest();

  const Sizes sizes_;
  const Write write_;
  std::span<Slot> slots_;
  std::span<std::atomic<std::uint32_t>> owners_;  // of buffers: slot + 1; 0: free
  std::uint64_t* words_;                          // of each buffer: a bit for each written byte
  std::byte* images_;                             // of each buffer
  std::vector<std::atomic<bool>> mapped_;         // buffers whose pages this process has mapped
};

}  // namespace pario::engine
