// The number of collective calls that may follow a meeting without another one: a function of the
// meetings before. Pure: no communication.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/pattern/pattern.hpp"
#include "parallel/plan/plan.hpp"

namespace pario::engine {

/// The series of one sequence of collective calls. It is the same on all ranks but for
/// expects_run() and is_usual(), which are about this rank's accesses. For one thread at a time.
class Series {
 public:
  /// The most calls of a series.
  static constexpr std::uint64_t kMost = 255;

  /// After a meeting of a data access: begins a series if the meetings before allow it. `ranks`:
  /// all summaries. `direct`: nothing was exchanged, and the policy permits series.
  void begin(plan::Direction direction, std::span<const pattern::Summary> ranks,
             const pattern::Summary& mine, bool direct);
  /// Before a meeting. `moves_data`: of a data access; another call begins the counts anew.
  void end(bool moves_data) {
    left_ = 0;
    if (!moves_data) learned_ = {};
  }
  /// True if calls of a series follow.
  bool is_open() const { return left_ > 0; }
  /// True if the next data access of this direction belongs to a series.
  bool continues(plan::Direction direction) const {
    return is_turn(direction) ? left_ > 1 && of(direction).streak > kFirstMeetings : left_ > 0;
  }
  /// True if the direction is not that of the calls before.
  bool is_turn(plan::Direction direction) const { return direction != direction_; }
  /// Changes the direction, which is a call of the series.
  void turn(plan::Direction direction) {
    direction_ = direction;
    count_call();
  }
  void count_call() { --left_; }

  plan::Direction direction() const { return direction_; }
  /// True if this rank moved one run of bytes in the last meeting of this direction.
  bool expects_run(plan::Direction direction) const { return of(direction).usual == Shape::run; }
  /// True if this rank's access has the shape of its access in the last meeting.
  bool is_usual(const pattern::Summary& mine) const {
    return shape_of(mine) == of(direction_).usual;
  }

 private:
  enum class Shape : std::uint8_t { nothing, run, other };
  /// The meetings of one direction.
  struct Learned {
    std::uint64_t streak = 0;      ///< successive ones without exchange
    Shape usual = Shape::nothing;  ///< of this rank's access in the last one
  };
  static constexpr std::uint64_t kFirstMeetings = 3;  // of a streak: no series follows them

  static Shape shape_of(const pattern::Summary& summary);
  static std::size_t index_of(plan::Direction direction) {
    return direction == plan::Direction::write ? 1 : 0;
  }
  const Learned& of(plan::Direction direction) const { return learned_[index_of(direction)]; }

  std::array<Learned, 2> learned_ = {};  // by direction
  std::uint64_t left_ = 0;               // calls
  plan::Direction direction_ = plan::Direction::write;
};

}  // namespace pario::engine
