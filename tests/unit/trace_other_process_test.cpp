// The calls of other processes, read from their logs.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <fstream>
#include <functional>
#include <string>

#include "core/trace/format.hpp"
#include "tracing.hpp"

namespace pario::trace {
namespace {

using State = OtherCall::State;

/// A child that traces into the directory of its parent, and waits inside `body`.
class Child {
 public:
  explicit Child(const std::function<void(const std::function<void()>& wait)>& body) {
    int ready[2] = {-1, -1};
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      restart_after_fork();
      body([&] {
        EXPECT_EQ(::write(ready[1], "x", 1), 1);
        while (true) ::pause();
      });
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  OtherCall call() const { return call_of_process(static_cast<std::uint64_t>(pid_), -1); }

 private:
  pid_t pid_ = -1;
};

class OtherProcess : public Tracing {
 protected:
  std::string log_of(pid_t pid) const {
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      if (entry.path().string().find("." + std::to_string(pid) + ".") != std::string::npos)
        return entry.path();
    return {};
  }
};

/// Shows a call in a frame of its own: calls nest as the stack grows.
template <class Wait>
[[gnu::noinline]] void read_inside(const Wait& wait) {
  const InProgress inner({.function = kReadId}, ticks());
  wait();
}

TEST_F(OtherProcess, ShowsItsCallWithTheNestedCallAndTheFile) {
  begin();
  const std::uint64_t before = ticks();
  const Child child([&](const auto& wait) {
    for (int i = 0; i < 300; ++i) record_of("/data/" + std::to_string(i));  // several blocks
    const std::uint32_t file = index_of(record_of("/data/result"));
    const InProgress outer({.function = kWriteId, .file = file, .offset = 512}, before);
    read_inside(wait);
  });
  const OtherCall call = child.call();
  ASSERT_EQ(call.state, State::inside);
  EXPECT_STREQ(call.outer->name, "write");
  EXPECT_STREQ(call.inner->name, "read");
  EXPECT_STREQ(call.path, "/data/result");
  EXPECT_EQ(call.offset, 512U);
  EXPECT_GE(call.seconds, 0);
}

TEST_F(OtherProcess, ShowsThePathOfAnOpening) {
  begin();
  const Child child([](const auto& wait) {
    const InProgress call({.function = kOpenId, .path = "/data/fifo"}, ticks());
    wait();
  });
  EXPECT_STREQ(child.call().path, "/data/fifo");
}

TEST_F(OtherProcess, IsOutsideBetweenCalls) {
  begin();
  const Child child([](const auto& wait) {
    count(record_of("/data/result"), write_call(0, 10));
    wait();
  });
  EXPECT_EQ(child.call().state, State::outside);
}

TEST_F(OtherProcess, IsFoundByItsRank) {
  begin();
  process().mpi_size = 2;
  const Child child([](const auto& wait) {
    process().mpi_rank = 1 + 1;
    process().mpi_size = 2;
    const InProgress call({.function = kSendId}, ticks());
    wait();
  });
  EXPECT_EQ(call_of_process(0, 1).state, State::inside);
  EXPECT_EQ(call_of_process(0, 0).state, State::unknown);
}

TEST_F(OtherProcess, IsUnknownIfTwoProcessesHaveTheRank) {
  begin();
  const auto be_rank_0 = [](const auto& wait) {
    process().mpi_rank = 1;
    wait();
  };
  const Child one(be_rank_0), another(be_rank_0);
  EXPECT_EQ(call_of_process(0, 0).state, State::unknown);
}

TEST_F(OtherProcess, HasEndedAfterItsEnd) {
  begin();
  const Child child([](const auto& wait) {
    finish(1, 0);
    wait();
  });
  EXPECT_EQ(child.call().state, State::ended);
}

TEST_F(OtherProcess, IsUnknownWithoutALog) {
  begin();
  EXPECT_EQ(call_of_process(1, 0).state, State::unknown);
}

TEST_F(OtherProcess, IsUnknownIfItsLogHasAnotherSchema) {
  begin();
  const Child child([](const auto& wait) { wait(); });
  EXPECT_EQ(child.call().state, State::outside);
  std::fstream log(log_of(child.pid()), std::ios::in | std::ios::out | std::ios::binary);
  BlockHeader header = {};
  log.read(reinterpret_cast<char*>(&header), sizeof header);
  log.seekp(static_cast<std::streamoff>(header.size + offsetof(BlockHeader, checksum)));
  log.put('x').flush();
  EXPECT_EQ(child.call().state, State::unknown);
}

TEST_F(OtherProcess, IsOutsideIfItsLogEndsEarly) {
  begin();
  const Child child([](const auto& wait) {
    const InProgress call({.function = kSendId}, ticks());
    wait();
  });
  EXPECT_EQ(child.call().state, State::inside);
  std::filesystem::resize_file(log_of(child.pid()), 5 * kPage);  // before the thread's block
  EXPECT_EQ(child.call().state, State::outside);
}

}  // namespace
}  // namespace pario::trace
