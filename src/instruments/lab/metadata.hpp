// The metadata server of a lab: counts the requests about names, and delays each. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "instruments/lab/clock.hpp"

namespace pario::lab {

enum class MetadataKind : std::uint8_t { lookup, open, list, link, change, count };
inline constexpr std::size_t kMetadataKinds = static_cast<std::size_t>(MetadataKind::count);
inline constexpr std::array<const char*, kMetadataKinds> kMetadataNames = {
    "lookups", "opens", "lists", "links", "changes"};

/// Serves any number of requests at the same time, each within `latency`.
class Metadata {
 public:
  explicit Metadata(Duration latency) : latency_(latency) {}

  /// Counts a request and waits for its end.
  void serve(MetadataKind kind);
  Duration latency() const { return latency_; }
  std::uint64_t count(MetadataKind kind) const {
    return counts_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  }
  void reset_counts() {
    for (auto& count : counts_) count.store(0, std::memory_order_relaxed);
  }

 private:
  Duration latency_;
  std::array<std::atomic<std::uint64_t>, kMetadataKinds> counts_{};
};

}  // namespace pario::lab
