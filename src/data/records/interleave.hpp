// Several files read side by side: some records of one, some of the next, in the order of tf.data's
// `interleave`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pario::records {

/// `cycle` files are open at a time and take turns, in each of which one gives `block` records. A
/// file that has fewer at its turn is closed, and the next one is opened at the turn after that.
/// Memory is of the order of files x cycle.
class Interleaving {
 public:
  /// `counts`: records of each file. Neither `cycle` nor `block` is 0.
  Interleaving(std::span<const std::uint64_t> counts, std::uint64_t cycle, std::uint64_t block);
  /// The record, numbered through all files, at `position` < the sum of the counts.
  std::uint64_t at(std::uint64_t position) const;

 private:
  /// The record with which a file goes on, and the end of the file.
  struct Seat {
    std::uint64_t next = 0, end = 0;
    bool open = false;
  };
  struct Unopened {
    std::span<const std::uint64_t> counts;
    std::uint64_t begin = 0;  ///< record with which the first of them begins
  };
  /// Rounds in which the same files give whole blocks; or what one file gives in one turn.
  struct Stretch {
    std::uint64_t position;
    std::size_t first, files;  ///< of firsts_
  };
  void add_whole_rounds(std::span<Seat> seats);
  void add_turn(Seat& seat, Unopened& files);
  void add(std::uint64_t records, std::size_t files);

  std::uint64_t block_, position_ = 0;
  std::vector<Stretch> stretches_;
  std::vector<std::uint64_t> firsts_;  ///< records with which files go on in a stretch
};

}  // namespace pario::records
