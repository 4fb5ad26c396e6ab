// The storage of a shared file pointer: a word in the memory of a node or, on several nodes, 8
// bytes of a hidden file beside the data file.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/base.hpp"

namespace pario::engine {

/// A shared word. Thread-safe; any rank may use it at any time.
class PointerStore {
 public:
  virtual ~PointerStore() = default;
  /// Adds `bytes` and returns the position before.
  virtual base::Result<std::uint64_t> advance(std::uint64_t bytes) = 0;
  virtual base::Status set(std::uint64_t position) = 0;
  /// Removes the hidden file. Called by one rank when no rank uses the pointer any more.
  virtual void remove() {}
};

/// `word` must outlive the store.
std::unique_ptr<PointerStore> make_pointer_in_memory(std::atomic<std::uint64_t>& word);
/// The hidden file is created at first use; `number` distinguishes openings of `path`.
std::unique_ptr<PointerStore> make_pointer_in_file(const std::string& path, std::uint64_t number);

}  // namespace pario::engine
