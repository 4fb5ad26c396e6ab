// Non-blocking calls.
#include <thread>

#include "engine_support.hpp"

namespace pario::engine {
namespace {

/// Ranks whose communicator only the program's thread may use.
class OneThread final : public comm::Comm {
 public:
  explicit OneThread(std::shared_ptr<comm::Comm> inner)
      : inner_(std::move(inner)), owner_(std::this_thread::get_id()) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const comm::Topology& topology() const override { return inner_->topology(); }
  bool thread_safe() const override { return false; }
  bool alive(int) const override { return true; }
  int world_rank(int rank) const override { return rank; }
  base::Status check(std::uint64_t silence_s) override { return inner_->check(silence_s); }
  void fail(const base::Error& error) override { inner_->fail(error); }
  bool has_failed() const override { return inner_->has_failed(); }
  base::Status failure() override { return inner_->failure(); }
  void announce(const char* call) override { inner_->announce(call); }
  void note_call(const char* call) override { inner_->note_call(call); }
  comm::Attendance attendance() override { return inner_->attendance(); }
  void keep_alive(std::uint64_t interval_ns) override { inner_->keep_alive(interval_ns); }
  std::uint64_t last_keep_alive() const override { return inner_->last_keep_alive(); }
  bool claim_report() override { return inner_->claim_report(); }
  void release_report() override { inner_->release_report(); }
  std::shared_ptr<comm::SharedMemory> share(std::size_t size,
                                            const comm::Patience& patience) override {
    return inner_->share(size, patience);
  }
  base::Status allgather(const void* mine, std::size_t each, void* all,
                         const comm::Patience& patience) override {
    return inner_->allgather(mine, each, all, patience);
  }
  base::Status broadcast(void* data, std::size_t size, int root,
                         const comm::Patience& patience) override {
    return inner_->broadcast(data, size, root, patience);
  }
  base::Status barrier(const comm::Patience& patience) override {
    return inner_->barrier(patience);
  }
  std::shared_ptr<comm::Comm> duplicate(const comm::Patience& patience) override {
    return std::make_shared<OneThread>(inner_->duplicate(patience));
  }
  std::unique_ptr<comm::Pending> send(int to, int tag, std::span<const std::byte> data) override {
    EXPECT_EQ(owner_, std::this_thread::get_id());
    return inner_->send(to, tag, data);
  }
  std::unique_ptr<comm::Pending> receive(int from, int tag, std::span<std::byte> data) override {
    EXPECT_EQ(owner_, std::this_thread::get_id());
    return inner_->receive(from, tag, data);
  }

 private:
  std::shared_ptr<comm::Comm> inner_;
  std::thread::id owner_;
};

/// Starts `calls` collective writes of one block each and further independent ones, and completes
/// all.
void start_many(std::shared_ptr<comm::Comm> ranks, const std::string& path, bool test) {
  constexpr std::uint64_t kBlock = 500, kCalls = 12;
  auto opened = SharedFile::open(ranks, fresh(path));
  ASSERT_TRUE(opened.ok()) << opened.error().text();
  SharedFile& file = **opened;
  const auto size = static_cast<std::uint64_t>(ranks->size()),
             rank = static_cast<std::uint64_t>(ranks->rank());
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::shared_ptr<Operation>> operations;
  for (std::uint64_t call = 0; call < 2 * kCalls; ++call) {
    const std::uint64_t offset = (call * size + rank) * kBlock;
    buffers.push_back(bytes_at(offset, kBlock));
    operations.push_back(file.start(plan::Direction::write, plain(buffers.back(), offset),
                                    call % 2 == 0 ? With::together : With::alone, "iwrite"));
  }
  for (const auto& operation : operations) {
    while (test && !operation->is_done()) std::this_thread::yield();
    operation->wait();
    EXPECT_OK(operation->result());
    EXPECT_EQ(operation->result().value(), kBlock);
  }
  std::vector<std::byte> all(2 * kCalls * size * kBlock);
  EXPECT_OK(file.sync());
  EXPECT_OK(file.read(plain(all, 0), With::together, "read"));
  EXPECT_EQ(all, bytes_at(0, all.size()));
  EXPECT_OK(file.close());
}

TEST(EngineStarted, CompletesByItself) {
  const Directory directory;
  for (const auto& shape : shapes())
    comm::run_as_threads(shape, [&](std::shared_ptr<comm::Comm> ranks) {
      start_many(ranks, directory / "a", ranks->rank() % 2 == 0);
    });
}

TEST(EngineStarted, CompletesWhereOnlyTheProgramsThreadMayCommunicate) {
  const Directory directory;
  for (const bool test : {false, true})
    comm::run_as_threads(std::vector<int>{0, 0, 1}, [&](std::shared_ptr<comm::Comm> ranks) {
      start_many(std::make_shared<OneThread>(ranks), directory / "a", test);
    });
}

/// Starts a small write on each of two ranks; `kept`: it stays in memory until the close.
void expect_write_at_once(const OpenRequest& request, std::uint64_t kept) {
  with_file(std::vector<int>{0, 0}, request, [&](SharedFile& file, comm::Comm& ranks) {
    const auto offset = static_cast<std::uint64_t>(ranks.rank()) * 1000;
    std::vector<std::byte> buffer = bytes_at(offset, 1000);
    const auto operation =
        file.start(plan::Direction::write, plain(buffer, offset), With::alone, "iwrite");
    EXPECT_TRUE(operation->is_done());
    EXPECT_EQ(operation->result().value(), 1000u);
    EXPECT_EQ(file.statistics().written_behind, kept);
  });
  EXPECT_EQ(contents(request.path), bytes_at(0, 2000));
}

TEST(EngineStarted, MakesSmallWritesAtOnce) {
  const Directory directory;
  expect_write_at_once(fresh(directory / "quick"), 0);
}

TEST(EngineStarted, KeepsSmallWritesAtOnce) {
  const Directory directory;
  OpenRequest request = fresh(directory / "kept");
  request.hints.pario_write_behind = 1 << 20;
  expect_write_at_once(request, 1);
}

TEST(EngineStarted, KeepsTheOrderOfCollectiveCalls) {
  const Directory directory;
  with_file(std::vector<int>{0, 0, 0}, fresh(directory / "order"),
            [](SharedFile& file, comm::Comm& ranks) {
              const auto offset = static_cast<std::uint64_t>(ranks.rank()) * 100;
              std::vector<std::byte> first(100, std::byte{1}), second(100, std::byte{2}),
                  found(100);
              const auto operation = file.start(plan::Direction::write, plain(first, offset),
                                                With::together, "iwrite_all");
              EXPECT_OK(file.write(plain(second, offset), With::together, "write_all"));
              EXPECT_TRUE(operation->is_done());
              EXPECT_OK(file.read(plain(found, offset), With::alone, "read"));
              EXPECT_EQ(found, second);
            });
}

TEST(EngineStarted, DoesNotWaitForOthersToStart) {
  const Directory directory;
  std::atomic<bool> started{false};
  with_file(
      std::vector<int>{0, 0}, fresh(directory / "start"), [&](SharedFile& file, comm::Comm& ranks) {
        std::vector<std::byte> buffer(100);
        if (ranks.rank() == 1)
          while (!started) std::this_thread::yield();
        const auto operation = file.start(
            plan::Direction::write, plain(buffer, static_cast<std::uint64_t>(ranks.rank()) * 100),
            With::together, "iwrite_all");
        if (ranks.rank() == 0) {
          EXPECT_FALSE(operation->is_done());
          started = true;
        }
        operation->wait();
        EXPECT_OK(operation->result());
      });
}

TEST(EngineStarted, IsFinishedByClose) {
  const Directory directory;
  std::vector<std::byte> buffers[2] = {bytes_at(0, 100'000), bytes_at(100'000, 100'000)};
  std::shared_ptr<Operation> operations[4];
  with_file(
      std::vector<int>{0, 0}, fresh(directory / "close"), [&](SharedFile& file, comm::Comm& ranks) {
        const auto rank = static_cast<std::size_t>(ranks.rank());
        operations[rank] = file.start(plan::Direction::write, plain(buffers[rank], rank * 100'000),
                                      With::together, "iwrite_all");
        operations[2 + rank] = file.start(
            plan::Direction::write, plain(buffers[rank], rank * 100'000), With::alone, "iwrite");
      });
  for (const auto& operation : operations) EXPECT_TRUE(operation->is_done());
  EXPECT_EQ(contents(directory / "close"), bytes_at(0, 200'000));
}

}  // namespace
}  // namespace pario::engine
