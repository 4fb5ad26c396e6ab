// One measurement: its parameters, memory, places and errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/base/descriptor.hpp"
#include "instruments/ways/places.hpp"
#include "instruments/ways/ways.hpp"

namespace pario::ways {

/// Bytes of one call.
inline std::uint64_t unit_of(const Way& way, const Work& work) {
  return way.call == Call::readv ? work.piece * way.at_a_time : work.piece;
}

/// One run of a way over a file: its memory, the places still to move, and the wrong pieces.
struct WayRun {
  const std::string& path;
  Way way;
  Work work;
  std::byte* memory;  ///< `at_a_time` pieces
  Places places;
  std::uint64_t size;  ///< of the file
  std::uint64_t wrong = 0;

  std::byte* piece(std::uint64_t number) const { return memory + number * work.piece; }
  static void sign(std::byte* piece, std::uint64_t place) {
    std::memcpy(piece, &place, sizeof place);
  }
  void verify(const std::byte* piece, std::uint64_t place) {
    wrong += std::memcmp(piece, &place, sizeof place) != 0 ? 1 : 0;
  }
  std::uint64_t unit() const { return unit_of(way, work); }
  base::Error error(const char* operation, int number, std::uint64_t place = 0) const {
    return {number, operation, path, {place, place + unit()}};
  }
};

/// Moves pieces until Places ends.
using Mover = base::Status (*)(WayRun& run, int descriptor);
base::Status move_by_calls(WayRun& run, int descriptor);
base::Status move_by_stdio(WayRun& run, int descriptor);
base::Status move_by_map(WayRun& run, int descriptor);
base::Status move_by_ring(WayRun& run, int descriptor);

}  // namespace pario::ways
