// Random calls in which something goes wrong: files that falter or fail, ranks that cannot take part, ranks that die. Whatever it is, all
// ranks learn the same of every collective call, and nobody waits for ever.
#include <cerrno>
#include <string_view>

#include "engine_support.hpp"
#include "pattern_model.hpp"

namespace pario::engine {
namespace {

enum class Trouble : std::uint8_t { falters, fails, refuses, dies };
constexpr int kSteps = 12;

struct Script {
  std::uint64_t seed;
  std::vector<int> shape;
  Trouble trouble;
  int who, when;  ///< which rank is in trouble, from which step on
};

/// What goes wrong with a file, by chance. Thread-safe.
class Dice {
 public:
  Dice(std::uint64_t seed, bool fails) : random_(seed), fails_(fails) {}
  storage::Fault throw_for(std::string_view operation) {
    using Kind = storage::Fault::Kind;
    const std::scoped_lock lock(mutex_);
    const bool wrong = operation != "close" && operation != "unlock" && random_.one_in(4);
    if (!wrong) return {};
    if (fails_) return {Kind::error, EIO};
    if (operation != "write" && operation != "read") return {};
    return {random_.one_in(2) ? Kind::short_transfer : Kind::interrupted};
  }

 private:
  std::mutex mutex_;
  pattern::Random random_;
  bool fails_;
};

Opener opener_of(const Script& script, int rank) {
  const bool fails = script.trouble == Trouble::fails && rank == script.who;
  const bool troubled = fails || script.trouble == Trouble::falters;
  const auto dice = std::make_shared<Dice>(script.seed + static_cast<std::uint64_t>(rank), fails);
  return [=](const storage::OpenRequest& request) -> base::Result<std::unique_ptr<storage::File>> {
    auto file = storage::open(request);
    if (!file || !troubled) return file;
    return storage::make_faulty(std::move(*file), [dice](const char* operation, base::Extent) { return dice->throw_for(operation); });
  };
}

/// One rank's part.
class TroublePlayer {
 public:
  TroublePlayer(const Script& script, SharedFile& file, const comm::Comm& ranks)
      : common_(script.seed),
        own_(script.seed * 100 + static_cast<std::uint64_t>(ranks.rank())),
        file_(file),
        view_(dealt(ranks.rank(), ranks.size(), 1 + common_.upto(200))) {}

  /// A collective call, the same on all ranks.
  base::Status step() {
    for (std::uint64_t i = own_.upto(2); i > 0; --i) static_cast<void>(move(plan::Direction::write, With::alone));
    switch (common_.upto(8)) {
      case 0:
        return file_.sync();
      case 1:
        return file_.resize(common_.upto(100'000));
      case 2:
        return file_.order_shared(own_.upto(10), "write_ordered").status();
      case 3:
        return file_.preallocate(1 + common_.upto(100'000));
      case 4:
      case 5:
        return move(plan::Direction::read, With::together);
      default:
        return move(plan::Direction::write, With::together);
    }
  }

  /// A write that one rank refuses.
  base::Status refused(bool by_me) {
    std::vector<std::byte> bytes(100);
    const pattern::Access access{.buffer = bytes.data(), .view = view_, .bytes = bytes.size()};
    if (!by_me) return file_.write(access, With::together, "write_all").status();
    file_.refuse(plan::Direction::write, {.number = EINVAL}, "write_all");
    return base::Error{.number = EINVAL, .rank = file_.comm().rank()};
  }

 private:
  base::Status move(plan::Direction direction, With with) {
    std::vector<std::byte> bytes(own_.one_in(4) ? 0 : own_.upto(6000), std::byte{1});
    const pattern::Access access{.buffer = bytes.data(), .view = view_, .position = own_.upto(3000), .bytes = bytes.size()};
    const bool starts = (with == With::together ? common_ : own_).one_in(4);
    if (!starts)
      return (direction == plan::Direction::write ? file_.write(access, with, "write") : file_.read(access, with, "read")).status();
    const auto operation = file_.start(direction, access, with, "start");
    operation->wait();
    return operation->result().status();
  }

  pattern::Random common_, own_;
  SharedFile& file_;
  pattern::FileView view_;
};

/// What a rank was told; empty: nothing was wrong.
std::string told(const base::Status& status) {
  return status ? std::string() : base::errno_name(status.error().number) + (" of rank " + std::to_string(status.error().rank));
}

OpenRequest request_of(const Script& script, const std::string& path) {
  pattern::Random random(script.seed);
  const auto choice = [&] { return static_cast<hints::Choice>(random.upto(2)); };
  OpenRequest request = fresh(path);
  request.hints.romio_cb_write = choice();
  request.hints.romio_cb_read = choice();
  request.hints.romio_ds_write = choice();
  request.hints.cb_buffer_size = 4096;
  request.hints.pario_write_behind = random.one_in(2) ? 0 : 256u << random.upto(8);
  request.hints.pario_merge_collectives = random.one_in(2) ? 0 : 256u << random.upto(8);
  return request;
}

Script script_of(std::uint64_t seed) {
  pattern::Random random(seed);
  const std::vector<std::vector<int>> several{{0, 0}, {0, 0, 0, 0}, {0, 0, 1, 1}, {0, 1, 0, 2, 1, 0, 2, 2}};  // on every node
  const std::vector<int> shape = several[random.upto(several.size() - 1)];
  return {seed, shape, static_cast<Trouble>(random.upto(3)), static_cast<int>(random.upto(shape.size() - 1)),
          static_cast<int>(random.upto(kSteps - 1))};
}

/// What a rank is told of each call; who has died is told no more.
std::vector<std::string> take_part(const Script& script, SharedFile& file, const comm::Comm& ranks) {
  TroublePlayer player(script, file, ranks);
  const bool mine = ranks.rank() == script.who;
  std::vector<std::string> all;
  for (int step = 0; step < kSteps; ++step) {
    if (step == script.when && script.trouble == Trouble::refuses) all.push_back(told(player.refused(mine)));
    if (step == script.when && script.trouble == Trouble::dies && mine) return {};
    all.push_back(told(player.step()));
  }
  return all;
}

void play_troubles(std::uint64_t seed) {
  const Script script = script_of(seed);
  SCOPED_TRACE("PARIO_TEST_SEED=" + std::to_string(seed));
  const Directory directory;
  const OpenRequest request = request_of(script, directory / "troubles");
  std::vector<std::vector<std::string>> learnt(script.shape.size());
  comm::run_as_threads(script.shape, [&](const std::shared_ptr<comm::Comm>& ranks) {
    auto file = SharedFile::open_with(ranks, request, opener_of(script, ranks->rank()));
    ASSERT_TRUE(file.ok()) << file.error().text();
    std::vector<std::string>& mine = learnt[static_cast<std::size_t>(ranks->rank())];
    mine = take_part(script, **file, *ranks);
    if (script.trouble == Trouble::dies && ranks->rank() == script.who) return;
    mine.push_back(told((*file)->close()));
  });
  const std::vector<std::string>& first = learnt[script.who == 0 ? 1 : 0];
  if (script.trouble == Trouble::dies) {
    for (std::size_t rank = 0; rank < learnt.size(); ++rank)
      EXPECT_EQ(learnt[rank].empty() || learnt[rank].back().empty(), static_cast<int>(rank) == script.who) << "rank " << rank;
    return;
  }
  for (const auto& other : learnt) EXPECT_EQ(other, first);
  if (script.trouble == Trouble::falters) {
    EXPECT_EQ(first, std::vector<std::string>(first.size()));
  }
}

TEST(EngineTroubles, AreTheSameToAllRanksAndNobodyWaitsForEver) {
  const std::uint64_t seed = pattern::first_seed(), cases = pattern::cases(60);
  for (std::uint64_t i = 0; i < cases && !HasFailure(); ++i) play_troubles(seed + i);
}

}  // namespace
}  // namespace pario::engine
