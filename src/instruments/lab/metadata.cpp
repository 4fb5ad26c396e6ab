#include "instruments/lab/metadata.hpp"

#include <chrono>
#include <thread>

namespace pario::lab {

void Metadata::serve(MetadataKind kind) {
  counts_[static_cast<std::size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
  if (latency_ > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(latency_));
}

}  // namespace pario::lab
