// Workers of a team all end if one of them ends, for any reason.
#include "data/records/team.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <thread>

namespace pario::records {
namespace {

TEST(Team, AnErrorOfOneEndsAll) {
  Meter meter;
  const base::Status status = run_team(3, meter, [&](unsigned worker) -> base::Status {
    if (worker == 1) return base::Error{.number = EIO, .operation = "read"};
    while (!meter.is_stopped()) std::this_thread::yield();
    return {};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().number, EIO);
}

TEST(Team, MemoryThatIsNotThereIsAnError) {
  Meter meter;
  for (const bool too_long : {false, true}) {
    const base::Status status = run_team(2, meter, [too_long](unsigned worker) -> base::Status {
      if (worker == 0 && too_long) throw std::length_error("vector");
      if (worker == 0) throw std::bad_alloc();
      return {};
    });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().number, ENOMEM);
  }
}

}  // namespace
}  // namespace pario::records
