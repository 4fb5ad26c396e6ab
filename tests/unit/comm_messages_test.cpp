// Messages of any size in the channels of the member callback: order, patience, keep-alives and
// errors.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "comm_mailbox.hpp"
#include "pauses.hpp"

namespace pario::comm {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000, kLong = 60'000 * kMillisecond;
const int kNodes[] = {0, 0, 1};

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string text(const Message& message) {
  return {reinterpret_cast<const char*>(message.data.data()), message.data.size()};
}
Router::Wait wait(int channel, int from, std::uint64_t patience_ns) {
  return {.channel = channel,
          .from = from,
          .begin_ns = base::monotonic_ns(),
          .patience_ns = patience_ns};
}
std::string receive_text(Router& router, Comm& comm, int channel, int from = -1) {
  const auto message = router.receive_message(comm, wait(channel, from, kLong));
  EXPECT_TRUE(message.ok() && *message);
  return message.ok() && *message ? std::to_string((*message)->from) + ":" + text(**message) : "";
}

TEST(Messages, KeepTheirOrderWithinAChannelAndDoNotMeetInOthers) {
  run_with_mailboxes(kNodes, [](const auto& router, const auto& comm) {
    if (comm->rank() == 1) {
      EXPECT_TRUE(router->send_message(0, 7, bytes("first")).ok());
      EXPECT_TRUE(router->send_message(0, 8, bytes("")).ok());
      EXPECT_TRUE(router->send_message(0, 7, bytes(std::string(100'000, 'x'))).ok());
    } else if (comm->rank() == 0) {
      EXPECT_EQ(receive_text(*router, *comm, 8), "1:");
      EXPECT_EQ(receive_text(*router, *comm, 7, 1), "1:first");
      EXPECT_EQ(receive_text(*router, *comm, 7, 1), "1:" + std::string(100'000, 'x'));
      EXPECT_EQ(receive_text(*router, *comm, 7), "2:other");
    } else {
      EXPECT_TRUE(router->send_message(0, 7, bytes("other")).ok());
    }
    EXPECT_TRUE(comm->barrier().ok());
  });
}

TEST(Messages, WithoutPatienceAreTakenOnlyIfTheyHaveArrived) {
  const auto boxes = std::make_shared<Mailboxes>(2);
  const auto router = std::make_shared<Router>(std::make_shared<MailboxTransport>(boxes, 0));
  const auto comm = make_callback(router);
  EXPECT_FALSE(*router->receive_message(*comm, wait(1, -1, 0)));
  Router sender(std::make_shared<MailboxTransport>(boxes, 1));
  ASSERT_TRUE(sender.send_message(0, 1, bytes("here")).ok());
  const auto message = *router->receive_message(*comm, wait(1, -1, 0));
  ASSERT_TRUE(message);
  EXPECT_EQ(text(*message), "here");
}

TEST(Messages, AWaitEndsWhenPatienceDoes) {
  const auto boxes = std::make_shared<Mailboxes>(2);
  const auto router = std::make_shared<Router>(std::make_shared<MailboxTransport>(boxes, 0));
  const auto comm = make_callback(router);
  const std::uint64_t begin = base::monotonic_ns();
  EXPECT_FALSE(*router->receive_message(*comm, wait(1, 1, 50 * kMillisecond)));
  EXPECT_GE(base::monotonic_ns() - begin, 50 * kMillisecond);
}

TEST(Messages, PatienceBeginsAgainWithAKeepAliveOfAnyRank) {
  constexpr std::uint64_t kPatience = 400 * kMillisecond;
  std::atomic<bool> ended{false};
  std::atomic<std::uint64_t> waited_ns{0};
  Pauses pauses;
  const std::uint64_t begin = base::monotonic_ns();
  run_with_mailboxes(kNodes, [&](const auto& router, const auto& comm) {
    if (comm->rank() == 0) {
      EXPECT_FALSE(*router->receive_message(*comm, wait(1, 1, kPatience)));
      waited_ns = base::monotonic_ns() - begin;
      ended = true;
    } else if (comm->rank() == 2) {  // on another node
      std::uint64_t last = begin;
      for (; !ended && last - begin < 4 * kPatience; pauses.note_step(last)) {
        comm->keep_alive(kPatience / 8);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      pauses.note_step(last);
    }
    while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  EXPECT_TRUE(waited_ns >= 4 * kPatience || pauses.longest_ns() > kPatience / 2) << waited_ns;
}

TEST(Messages, KeepAlivesOfManyRanksReachWaitingRanksNowAndThen) {
  constexpr std::uint64_t kInterval = 100 * kMillisecond;
  const int nodes[] = {0, 1, 2, 3};
  std::atomic<int> changes{0};
  std::atomic<bool> ended{false};
  Pauses pauses;
  const std::uint64_t begin = base::monotonic_ns();
  run_with_mailboxes(nodes, [&](const auto& router, const auto& comm) {
    std::uint64_t step = begin;
    if (comm->rank() == 0) {  // waits, and forwards meanwhile
      Router::Wait patient = wait(1, 1, 400 * kMillisecond);
      patient.look = [&] { return pauses.note_step(step), base::Status(); };
      EXPECT_FALSE(router->receive_message(*comm, patient).value());
      pauses.note_step(step);
      ended = true;
    } else if (comm->rank() == 1) {
      std::uint64_t last = 0;
      while (!ended) {
        EXPECT_TRUE(comm->check(0).ok());
        if (comm->last_keep_alive() != last) ++changes;
        last = comm->last_keep_alive();
        pauses.note_step(step);
      }
    } else {
      for (; !ended && step - begin < 20 * kInterval; pauses.note_step(step)) {
        comm->keep_alive(kInterval);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      pauses.note_step(step);
    }
    while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  const auto intervals = static_cast<int>((base::monotonic_ns() - begin) / kInterval);
  EXPECT_TRUE(changes >= 3 || pauses.longest_ns() > 2 * kInterval) << changes;
  EXPECT_LE(changes, 1 + intervals);
}

TEST(Messages, AnErrorOfTheLookEndsTheWait) {
  const auto boxes = std::make_shared<Mailboxes>(2);
  const auto router = std::make_shared<Router>(std::make_shared<MailboxTransport>(boxes, 0));
  const auto comm = make_callback(router);
  Router::Wait forever = wait(1, -1, kLong);
  forever.look = [] { return base::Status(base::Error{.number = EINTR}); };
  EXPECT_EQ(router->receive_message(*comm, forever).error().number, EINTR);
}

TEST(Messages, ADeadRankEndsTheWaitButAMessageThatItSentBeforeIsReceived) {
  run_with_mailboxes(kNodes, [](const auto& router, const auto& comm) {
    if (comm->rank() != 0) return;
    comm->fail({.number = ESRCH, .detail = "rank 1 has died"});
    EXPECT_TRUE(router->send_message(0, 3, bytes("sent before")).ok());
    EXPECT_EQ(receive_text(*router, *comm, 3), "0:sent before");
    const auto none = router->receive_message(*comm, wait(3, 1, kLong));
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().detail, "rank 1 has died");
  });
}

}  // namespace
}  // namespace pario::comm
