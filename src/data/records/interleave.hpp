// Interleaves the records of several files, in the order of tf.data's `interleave`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pario::records {

/// `cycle` files are open at a time and take turns of `block` records. A file with fewer records
/// left is closed at its turn, and the next file is opened at the turn after that. Memory grows as
/// files x cycle.
class Interleaving {
 public:
  /// `counts`: records of each file. Neither `cycle` nor `block` is 0.
  Interleaving(std::span<const std::uint64_t> counts, std::uint64_t cycle, std::uint64_t block);
  /// The record, numbered through all files, at `position` < the sum of the counts.
  std::uint64_t at(std::uint64_t position) const;

 private:
  /// The next record of an open file, and the end of the file.
  struct Seat {
    std::uint64_t next = 0, end = 0;
    bool open = false;
  };
  struct Unopened {
    std::span<const std::uint64_t> counts;
    std::uint64_t begin = 0;  ///< number of the first record of the first one
  };
  /// Rounds in which the same files give whole blocks; or the records of one file in one turn.
  struct Interval {
    std::uint64_t position;
    std::size_t first, files;  ///< of firsts_
  };
  void add_whole_rounds(std::span<Seat> seats);
  void add_turn(Seat& seat, Unopened& files);
  void add(std::uint64_t records, std::size_t files);

  std::uint64_t block_, position_ = 0;
  std::vector<Interval> intervals_;
  std::vector<std::uint64_t> firsts_;  ///< first record of each file in an interval
};

}  // namespace pario::records
