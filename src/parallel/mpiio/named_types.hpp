// Facts about the predefined datatypes, kept for the time of the process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "parallel/mpiio/call.hpp"

namespace pario::mpiio {

/// A value for each predefined type, which exists as long as the MPI. Look-ups take no lock. Types
/// that find no place are not kept. Thread-safe; lives as long as the process, because values are
/// never freed.
template <class Value>
class NamedTypes {
 public:
  /// Null: not known yet. `type`: a handle as a key (see mpi::Library::handle).
  const Value* find(Word type) const {
    for (std::size_t i = 0; i < kProbes; ++i) {
      const Entry* const entry = place(type, i).load(std::memory_order_acquire);
      if (entry == nullptr || entry->type == type) return entry ? &entry->value : nullptr;
    }
    return nullptr;
  }
  void add(Word type, const Value& value) {
    const auto* const entry = new Entry{type, value};
    for (std::size_t i = 0; i < kProbes; ++i) {
      const Entry* found = nullptr;
      if (place(type, i).compare_exchange_strong(found, entry)) return;
      if (found->type == type) break;
    }
    delete entry;
  }

 private:
  struct Entry {
    Word type;
    Value value;
  };
  using Place = std::atomic<const Entry*>;
  static constexpr std::size_t kPlaces = 256, kProbes = 8;

  static std::size_t index_of(Word type, std::size_t probe) {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
    return ((type * kOdd >> 32) + probe) % kPlaces;
  }
  Place& place(Word type, std::size_t probe) { return places_[index_of(type, probe)]; }
  const Place& place(Word type, std::size_t probe) const { return places_[index_of(type, probe)]; }

  std::array<Place, kPlaces> places_ = {};
};

}  // namespace pario::mpiio
