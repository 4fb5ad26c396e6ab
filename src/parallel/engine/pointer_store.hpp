// The storage of a shared file pointer: a word in the memory of a node or, on several nodes, 8
// bytes of a hidden file beside the data file.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/base.hpp"
#include "core/comm/comm.hpp"

namespace pario::engine {

/// A shared pointer in memory of the ranks of a node; zeroed at first.
struct PointerWords {
  std::atomic<std::uint64_t> position;
  /// The latest call of all ranks that has advanced the pointer: the number with which a rank began
  /// that, and the one with which it ended; the position before.
  std::atomic<std::uint64_t> claimed, advanced, before;
};

/// A shared word. Thread-safe; any rank may use it at any time.
class PointerStore {
 public:
  virtual ~PointerStore() = default;
  /// Adds `bytes` and returns the position before.
  virtual base::Result<std::uint64_t> advance(std::uint64_t bytes) = 0;
  /// Adds `bytes` once for all ranks, which have met in call `number` and all call this; returns
  /// the position before to each. The first rank to come does it. Numbers ascend. Nothing: this
  /// store needs messages for that.
  virtual std::optional<base::Result<std::uint64_t>> advance_once(std::uint64_t /*number*/,
                                                                  std::uint64_t /*bytes*/,
                                                                  const comm::Patience&) {
    return std::nullopt;
  }
  virtual base::Status set(std::uint64_t position) = 0;
  /// Removes the hidden file. Called by one rank when no rank uses the pointer any more.
  virtual void remove() {}
};

/// `words` must outlive the store.
std::unique_ptr<PointerStore> make_pointer_in_memory(PointerWords& words);
/// The hidden file is created at first use; `number` distinguishes openings of `path`.
std::unique_ptr<PointerStore> make_pointer_in_file(const std::string& path, std::uint64_t number);

}  // namespace pario::engine
