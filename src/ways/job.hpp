// One measurement: what is moved, through which memory, and what came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "ways/places.hpp"
#include "ways/ways.hpp"

namespace pario::ways {

/// Bytes that a call moves.
inline std::uint64_t unit_of(const Way& way, const Work& work) { return way.call == Call::readv ? work.piece * way.at_a_time : work.piece; }

struct Job {
  const std::string& path;
  Way way;
  Work work;
  std::byte* memory;  ///< `at_a_time` pieces
  Places places;
  std::uint64_t size;  ///< of the file
  std::uint64_t wrong = 0;

  std::byte* piece(std::uint64_t number) const { return memory + number * work.piece; }
  static void sign(std::byte* piece, std::uint64_t place) { std::memcpy(piece, &place, sizeof place); }
  void look(const std::byte* piece, std::uint64_t place) { wrong += std::memcmp(piece, &place, sizeof place) != 0 ? 1 : 0; }
  std::uint64_t unit() const { return unit_of(way, work); }
  base::Error error(const char* operation, int number, std::uint64_t place = 0) const {
    return {number, operation, path, {place, place + unit()}};
  }
};

/// An open file; closing it is part of what is timed.
class Opened {
 public:
  static base::Result<Opened> open(const Job& job);
  Opened(Opened&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Opened& operator=(Opened&&) = delete;
  ~Opened();
  int number() const { return number_; }

 private:
  explicit Opened(int number) : number_(number) {}
  int number_;
};

/// Moves pieces until there are no more places.
using Mover = base::Status (*)(Job& job, int descriptor);
base::Status move_by_calls(Job& job, int descriptor);
base::Status move_by_stdio(Job& job, int descriptor);
base::Status move_by_map(Job& job, int descriptor);
base::Status move_by_ring(Job& job, int descriptor);

}  // namespace pario::ways
