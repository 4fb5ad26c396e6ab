// The shared file pointer: a word in the memory of a node, or, on several nodes, 8 bytes of a hidden file beside the data file.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/base.hpp"
#include "comm/comm.hpp"

namespace pario::engine {

class SharedPointer {
 public:
  virtual ~SharedPointer() = default;
  /// Any rank at any time: the value before.
  virtual base::Result<std::uint64_t> advance(std::uint64_t bytes) = 0;
  virtual base::Status set(std::uint64_t position) = 0;
  /// Leaves nothing behind. By one rank, when nobody uses it any more.
  virtual void remove() {}
};

/// `word` must outlive it.
std::unique_ptr<SharedPointer> pointer_in_memory(std::atomic<std::uint64_t>& word);
/// The hidden file is made at first use; `number` tells it from those of other openings of `path`.
std::unique_ptr<SharedPointer> pointer_in_file(const std::string& path, std::uint64_t number);

}  // namespace pario::engine
