// The calls that may go without a meeting after meetings of different kinds.
#include "parallel/engine/series.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace pario::engine {
namespace {

using plan::Direction;

pattern::Summary nothing() { return {}; }
pattern::Summary run() { return {.span = {0, 100}, .bytes = 100, .pieces = 1}; }
pattern::Summary pieces() { return {.span = {0, 200}, .bytes = 100, .pieces = 10}; }

/// The numbers of the calls that are meetings, of the first `calls` calls of two ranks.
std::vector<int> list_meetings(Series& series, int calls, const pattern::Summary& other,
                               bool direct = true) {
  std::vector<int> meetings;
  for (int call = 1; call <= calls; ++call) {
    if (series.continues(Direction::write)) {
      series.count_call();
      continue;
    }
    meetings.push_back(call);
    series.end(true);
    series.begin(Direction::write, std::vector{run(), other}, run(), direct);
  }
  return meetings;
}

TEST(Series, DoublesAfterTheFirstMeetings) {
  Series series;
  EXPECT_EQ(list_meetings(series, 40, run()), (std::vector{1, 2, 3, 4, 6, 10, 18, 34}));
}

TEST(Series, HasALimit) {
  Series series;
  const std::vector<int> meetings = list_meetings(series, 3000, nothing());
  const std::size_t last = meetings.size() - 1;
  EXPECT_EQ(meetings[last] - meetings[last - 1], static_cast<int>(Series::kMost) + 1);
}

TEST(Series, DoesNotBeginIfAnyRankHasPieces) {
  Series series;
  EXPECT_EQ(list_meetings(series, 8, pieces()).size(), 8U);
}

TEST(Series, DoesNotBeginAfterAnExchange) {
  Series series;
  EXPECT_EQ(list_meetings(series, 8, run(), false).size(), 8U);
}

TEST(Series, BeginsAnewAfterACallWithoutData) {
  Series series;
  list_meetings(series, 10, run());
  EXPECT_TRUE(series.is_open());
  series.end(false);
  EXPECT_FALSE(series.is_open());
  EXPECT_EQ(list_meetings(series, 6, run()), (std::vector{1, 2, 3, 4, 6}));
}

TEST(Series, ContinuesInADirectionThatHasHadSeries) {
  Series series;
  list_meetings(series, 10, run());
  EXPECT_FALSE(series.continues(Direction::read)) << "it has had no meeting";
  for (int meeting = 0; meeting < 6; ++meeting)
    series.begin(Direction::read, std::vector{run(), run()}, run(), true);
  EXPECT_TRUE(series.continues(Direction::write));
  series.turn(Direction::write);
  EXPECT_EQ(series.direction(), Direction::write);
  EXPECT_TRUE(series.continues(Direction::write));
}

TEST(Series, TheLastCallIsNoTurn) {
  Series series;
  for (const Direction direction : {Direction::write, Direction::read})
    for (int meeting = 0; meeting < 4; ++meeting)
      series.begin(direction, std::vector{run(), run()}, run(), true);
  EXPECT_TRUE(series.continues(Direction::read));
  EXPECT_FALSE(series.continues(Direction::write)) << "the turn is a call, too";
}

TEST(Series, ComparesTheShapeOfAnAccess) {
  Series series;
  series.begin(Direction::write, std::vector{run(), run()}, run(), true);
  EXPECT_TRUE(series.expects_run(Direction::write));
  EXPECT_FALSE(series.expects_run(Direction::read));
  EXPECT_TRUE(series.is_usual(run()));
  EXPECT_FALSE(series.is_usual(pieces()));
  EXPECT_FALSE(series.is_usual(nothing()));
}

}  // namespace
}  // namespace pario::engine
