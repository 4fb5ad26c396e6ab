// Random calls with errors: files that are slow or fail, ranks that cannot take part, ranks that
// die. All ranks get the same error of every collective call, or of a later one if they may run
// ahead, and no rank waits without end.
#include <cerrno>
#include <string_view>

#include "engine_support.hpp"
#include "pattern_model.hpp"

namespace pario::engine {
namespace {

enum class FailureKind : std::uint8_t { falters, fails, refuses, dies };
constexpr int kSteps = 12;

struct Script {
  std::uint64_t seed;
  std::vector<int> shape;
  FailureKind kind;
  int who, when;  ///< the failing rank, and the step of its failure
};

/// Chooses the errors of a file at random. Thread-safe.
class Dice {
 public:
  Dice(std::uint64_t seed, bool fails) : random_(seed), fails_(fails) {}
  file::Fault throw_for(std::string_view operation) {
    using Kind = file::Fault::Kind;
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
  const bool fails = script.kind == FailureKind::fails && rank == script.who;
  const bool faulty = fails || script.kind == FailureKind::falters;
  const auto dice = std::make_shared<Dice>(script.seed + static_cast<std::uint64_t>(rank), fails);
  return [=](const file::OpenRequest& request) -> base::Result<std::unique_ptr<file::File>> {
    auto file = file::open(request);
    if (!file || !faulty) return file;
    return file::make_faulty(std::move(*file), [dice](const char* operation, base::Extent) {
      return dice->throw_for(operation);
    });
  };
}

/// One rank's part.
class ErrorPlayer {
 public:
  ErrorPlayer(const Script& script, SharedFile& file, const comm::Comm& ranks)
      : common_(script.seed),
        own_(script.seed * 100 + static_cast<std::uint64_t>(ranks.rank())),
        file_(file),
        view_(make_alternating_view(ranks.rank(), ranks.size(), 1 + common_.upto(200))) {}

  /// A collective call, the same on all ranks.
  base::Status step() {
    for (std::uint64_t i = own_.upto(2); i > 0; --i)
      static_cast<void>(move(plan::Direction::write, With::alone));
    switch (common_.upto(8)) {
      case 0:
        return file_.sync();
      case 1:
        return file_.resize(common_.upto(100'000));
      case 2:
        return file_.pointer().order(own_.upto(10), "write_ordered").status();
      case 3:
        return file_.preallocate(1 + common_.upto(100'000));
      case 4:
      case 5:
        return move(plan::Direction::read, With::together);
      default:
        return move(plan::Direction::write, With::together);
    }
  }

  /// A write in which one rank cannot take part.
  base::Status write_with_refusal(bool by_me) {
    std::vector<std::byte> bytes(100);
    const pattern::Access access{.buffer = bytes.data(), .view = view_, .bytes = bytes.size()};
    if (!by_me) return file_.write(access, With::together, "write_all").status();
    file_.refuse(plan::Direction::write, {.number = EINVAL}, "write_all");
    return base::Error{.number = EINVAL, .rank = file_.comm().rank()};
  }

 private:
  base::Status move(plan::Direction direction, With with) {
    std::vector<std::byte> bytes(own_.one_in(4) ? 0 : own_.upto(6000), std::byte{1});
    const pattern::Access access{
        .buffer = bytes.data(), .view = view_, .position = own_.upto(3000), .bytes = bytes.size()};
    const bool starts = (with == With::together ? common_ : own_).one_in(4);
    if (!starts)
      return (direction == plan::Direction::write ? file_.write(access, with, "write")
                                                  : file_.read(access, with, "read"))
          .status();
    const auto operation = file_.start(direction, access, with, "start");
    operation->wait();
    return operation->result().status();
  }

  pattern::Random common_, own_;
  SharedFile& file_;
  pattern::FileView view_;
};

/// The error of a rank as text; empty: success.
std::string error_text(const base::Status& status) {
  return status ? std::string()
                : base::errno_name(status.error().number) +
                      (" of rank " + std::to_string(status.error().rank));
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
  request.hints.pario_run_ahead = random.one_in(2) ? hints::Choice::disable : choice();
  return request;
}

Script script_of(std::uint64_t seed) {
  pattern::Random random(seed);
  const std::vector<std::vector<int>> several{
      {0, 0}, {0, 0, 0, 0}, {0, 0, 1, 1}, {0, 1, 0, 2, 1, 0, 2, 2}};  // several ranks on every node
  const std::vector<int> shape = several[random.upto(several.size() - 1)];
  return {seed, shape, static_cast<FailureKind>(random.upto(3)),
          static_cast<int>(random.upto(shape.size() - 1)),
          static_cast<int>(random.upto(kSteps - 1))};
}

/// The outcomes of a rank's calls, up to its death.
std::vector<std::string> take_part(const Script& script, SharedFile& file,
                                   const comm::Comm& ranks) {
  ErrorPlayer player(script, file, ranks);
  const bool mine = ranks.rank() == script.who;
  std::vector<std::string> all;
  for (int step = 0; step < kSteps; ++step) {
    if (step == script.when && script.kind == FailureKind::refuses)
      all.push_back(error_text(player.write_with_refusal(mine)));
    if (step == script.when && script.kind == FailureKind::dies && mine) return {};
    all.push_back(error_text(player.step()));
  }
  return all;
}

void play_errors(std::uint64_t seed) {
  const Script script = script_of(seed);
  SCOPED_TRACE("PARIO_TEST_SEED=" + std::to_string(seed));
  const Directory directory;
  const OpenRequest request = request_of(script, directory / "errors");
  std::vector<std::vector<std::string>> outcomes(script.shape.size());
  comm::run_as_threads(script.shape, [&](const std::shared_ptr<comm::Comm>& ranks) {
    auto file = SharedFile::open(ranks, request, opener_of(script, ranks->rank()));
    std::vector<std::string>& mine = outcomes[static_cast<std::size_t>(ranks->rank())];
    if (!file.ok()) return mine.push_back(error_text(file.status()));
    mine = take_part(script, **file, *ranks);
    if (script.kind == FailureKind::dies && ranks->rank() == script.who) return;
    mine.push_back(error_text((*file)->close()));
  });
  const std::vector<std::string>& first = outcomes[script.who == 0 ? 1 : 0];
  if (script.kind == FailureKind::dies) {
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank)
      EXPECT_EQ(outcomes[rank].empty() || outcomes[rank].back().empty(),
                static_cast<int>(rank) == script.who)
          << "rank " << rank;
    return;
  }
  const bool at_once = request.hints.pario_run_ahead == hints::Choice::disable ||
                       request.hints.pario_write_behind > 0 ||
                       request.hints.pario_merge_collectives > 0;
  const std::vector<std::string> none(first.size());
  for (const auto& other : outcomes) {
    if (at_once)
      EXPECT_EQ(other, first);
    else
      EXPECT_EQ(other == none, first == none);
  }
  if (script.kind == FailureKind::falters) {
    EXPECT_EQ(first, none);
  }
}

TEST(EngineRandomErrors, ReachAllRanksAndNoRankWaitsWithoutEnd) {
  const std::uint64_t seed = pattern::first_seed(), cases = pattern::cases(60);
  for (std::uint64_t i = 0; i < cases && !HasFailure(); ++i) play_errors(seed + i);
}

}  // namespace
}  // namespace pario::engine
