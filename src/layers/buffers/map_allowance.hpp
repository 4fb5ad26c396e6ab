// The bound of the bytes that are read ahead for the mapped files of a process.
#pragma once

#include <cstdint>
#include <mutex>

#include "layers/buffers/resident_pages.hpp"

namespace pario::buffers {

/// Bytes that may be read ahead: a few for each mapping, twice the bytes that the program touches,
/// and for each major page fault as many as a request costs. Reading ahead in vain thus takes about
/// as long as the program's own faults. Thread-safe.
class MapAllowance {
 public:
  static constexpr std::uint64_t kOfMapping = 4 << 20;
  static constexpr std::uint64_t kOfTouchedByte = 2;
  static constexpr std::uint64_t kOfFault = 64 << 10;

  /// Adds the bytes of a new mapping; the first one after a time without mappings starts anew.
  void add_mapping(const resident_pages::Progress& now, bool is_first);
  /// Takes up to `most` pieces of `piece` bytes; returns their number.
  std::uint64_t take(const resident_pages::Progress& now, std::uint64_t piece, std::uint64_t most);
  /// Returns bytes that were not read.
  void give_back(std::uint64_t bytes);

 private:
  void add_progress(const resident_pages::Progress& now);

  std::mutex mutex_;
  resident_pages::Progress last_ = {};
  std::uint64_t left_ = 0;
};

}  // namespace pario::buffers
