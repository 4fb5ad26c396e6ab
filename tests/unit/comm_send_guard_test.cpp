// Messages that UCX refuses, like those to a dead rank. Without UCX, pario's definition of its
// function refuses all messages.
#include "core/comm/send_guard.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

extern "C" void* ucp_tag_send_nbx(void* endpoint, const void* data, std::size_t count,
                                  std::uint64_t tag, const void* parameters);

namespace pario::comm {
namespace {

void* send() { return ucp_tag_send_nbx(nullptr, nullptr, 0, 0, nullptr); }

TEST(SendGuard, TheProgramsOwnMessagesFailAsTheyDo) { EXPECT_NE(send(), nullptr); }

TEST(SendGuard, GuardedMessagesAreLost) {
  const SendGuard guard;
  EXPECT_FALSE(guard.has_lost_message());
  EXPECT_EQ(send(), nullptr);
  EXPECT_TRUE(guard.has_lost_message());
}

TEST(SendGuard, AnInnerGuardKnowsOfItsOwnMessagesOnly) {
  const SendGuard outer;
  send();
  const SendGuard inner;
  EXPECT_FALSE(inner.has_lost_message());
  EXPECT_TRUE(outer.has_lost_message());
}

}  // namespace
}  // namespace pario::comm
