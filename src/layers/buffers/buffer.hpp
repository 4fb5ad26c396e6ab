// A buffer: one window of a file in memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "layers/buffers/byte_ranges.hpp"

namespace pario::buffers {

struct Handle;
class BufferedFile;

/// One buffer. Has no lock: its file owns it, or the background threads while it is queued or
/// reading.
struct Buffer {
  /// filling, queued: holds dirty bytes. reading, ready: holds bytes read ahead.
  enum class State : std::uint8_t { empty, filling, queued, reading, ready };

  /// The writer of a queued buffer: none yet, the background thread, finished, or the signal
  /// handler that ends the process.
  enum class Writer : std::uint8_t { none, background, finished, signal_handler };

  bool is_dirty() const { return state == State::filling || state == State::queued; }
  bool is_read_ahead() const { return state == State::reading || state == State::ready; }
  bool is_full(std::uint64_t size) const {
    return valid.ranges().size() == 1 && valid.ranges()[0].begin == 0 && valid.end() == size;
  }

  std::byte* memory = nullptr;
  BufferedFile* file = nullptr;
  Handle* handle = nullptr;          ///< its descriptor is used for the transfer
  Buffer* next = nullptr;            ///< in a queue of the background threads
  std::uint64_t begin = 0;           ///< of the window; of an appending buffer: its expected offset
  std::uint64_t dirty_since_ns = 0;  ///< time of its first dirty byte
  State state = State::empty;
  std::atomic<Writer> writer = Writer::none;
  ByteRanges valid = {};         ///< dirty bytes, or bytes read ahead
  std::uint64_t bytes_used = 0;  ///< of the bytes read ahead, those that reads asked for
};

}  // namespace pario::buffers
