// Kept writes of both kinds: the end of the program, and random calls against a model.
#include <barrier>
#include <cstdlib>
#include <mutex>

#include "engine_keep_support.hpp"
#include "pattern_model.hpp"

namespace pario::engine {
namespace {

/// The file that a program does not close; LeakSanitizer finds it here.
SharedFile* left_open = nullptr;

TEST(EngineKeep, KeptBytesAreWrittenAtTheEndOfTheProgram) {
  const Directory directory;
  const std::string path = directory / "exit";
  const auto leave = [&] {
    OpenRequest request = behind(path);
    request.hints.pario_merge_collectives = 1 << 16;
    auto file = SharedFile::open(comm::make_self(), request);
    write_bytes(**file, 0, 50, With::together);
    write_bytes(**file, 50, 50);
    left_open = file->release();
    std::exit(0);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(contents(path), bytes_at(0, 100));
}

TEST(EngineKeep, LostBytesAreReportedAtTheEndOfTheProgram) {
  const Directory directory;
  const auto leave = [&] {
    const auto ranks = comm::make_self();
    auto file = SharedFile::open(ranks, behind(directory / "lost"),
                                 breaking(true, {0, 100}, ENOSPC, broken_disk()));
    write_bytes(**file, 10, 50);
    left_open = file->release();
    std::exit(0);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(0),
              "the program has ended, and pwrite .*lost \\[10, 60\\): ENOSPC");
}

TEST(EngineKeep, LostBytesOfAFileThatIsNotClosedArePrinted) {
  const Directory directory;
  ::testing::internal::CaptureStderr();
  {
    auto file = SharedFile::open(comm::make_self(), behind(directory / "open"),
                                 breaking(true, {0, 100}, ENOSPC, broken_disk()));
    ASSERT_TRUE(file.ok());
    write_bytes(**file, 10, 50);
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("pario: no later call can report this error: "), text.npos) << text;
  EXPECT_NE(text.find("open [10, 60): ENOSPC"), text.npos) << text;
}

/// Rank 0 keeps bytes that it cannot write; `fail` makes a call when rank 2 is dead.
std::string text_after_loss(bool merges, bool is_deferred,
                            const std::function<base::Status(SharedFile&)>& fail) {
  const Directory directory;
  const std::string path = directory / "loss";
  std::string text;
  std::barrier all_have_written(3);
  comm::run_as_threads(std::vector<int>{0, 1, 1}, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file = SharedFile::open(ranks, merges ? merging(path) : behind(path),
                                 breaking(true, {0, 100}, ENOSPC, broken_disk()));
    ASSERT_TRUE(file.ok());
    const auto rank = static_cast<std::uint64_t>(ranks->rank());
    if (merges) write_bytes(**file, 10 + rank * 100, 50, With::together);
    if (!merges && rank == 0) write_bytes(**file, 10, 50);
    if (is_deferred && rank == 0) write_kept_writes(Reader::ranks);
    all_have_written.arrive_and_wait();
    if (rank == 2) return;
    const base::Status failed = fail(**file);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().number, ESRCH) << failed.error().text();
    if (rank == 0) text = failed.error().text();
  });
  return text;
}

TEST(EngineKeep, LostBytesAreNamedAfterTheLossOfARank) {
  const std::pair<const char*, std::function<base::Status(SharedFile&)>> calls[] = {
      {"close", [](SharedFile& file) { return file.close(); }},
      {"sync", [](SharedFile& file) { return file.sync(); }},
      {"set_size", [](SharedFile& file) { return file.resize(1000); }},
      {"set_atomicity", [](SharedFile& file) { return file.set_atomic(true); }},
  };
  for (const auto& [name, call] : calls)
    for (const auto& [merges, is_deferred] :
         {std::pair{false, false}, {false, true}, {true, false}}) {
      const std::string text = text_after_loss(merges, is_deferred, call);
      EXPECT_NE(text.find("loss [10, 60): ENOSPC"), text.npos)
          << name << " " << merges << is_deferred << ": " << text;
    }
}

/// Random calls of ranks, each with bytes of its own, against a model of each rank's bytes.
class Player {
 public:
  Player(std::uint64_t seed, SharedFile& file, const comm::Comm& ranks)
      : common_(seed),
        own_(seed * 100 + static_cast<std::uint64_t>(ranks.rank())),
        file_(file),
        view_(make_alternating_view(ranks.rank(), ranks.size(), 7)) {}

  void step() {
    switch (common_.upto(9)) {
      case 0:
        EXPECT_OK(file_.sync());
        return;
      case 1:
        return read(With::together);
      case 2:
      case 3:
      case 4:
        return write(With::together);
      default:
        for (std::uint64_t i = own_.upto(4); i > 0; --i)
          own_.one_in(3) ? read(With::alone) : write(With::alone);
    }
  }
  const std::vector<std::byte>& model() const { return model_; }
  const pattern::FileView& view() const { return view_; }

 private:
  pattern::Access access(std::vector<std::byte>& bytes, std::uint64_t position) const {
    return {.buffer = bytes.data(), .view = view_, .position = position, .bytes = bytes.size()};
  }
  void write(With with) {
    std::vector<std::byte> bytes(own_.one_in(20) ? own_.upto(5000) : own_.upto(60),
                                 static_cast<std::byte>(own_.upto(255)));
    const std::uint64_t position = own_.upto(3000);
    const bool starts =
        (with == With::together ? common_ : own_).one_in(4);  // other ranks start theirs, too
    const auto written = starts ? start_and_wait(plan::Direction::write, bytes, position, with)
                                : file_.write(access(bytes, position), with, "write");
    EXPECT_TRUE(written.ok() && *written == bytes.size());
    if (bytes.empty()) return;
    model_.resize(std::max<std::size_t>(model_.size(), position + bytes.size()));
    std::ranges::copy(bytes, model_.begin() + static_cast<std::ptrdiff_t>(position));
  }
  base::Result<std::uint64_t> start_and_wait(plan::Direction direction,
                                             std::vector<std::byte>& bytes, std::uint64_t position,
                                             With with) {
    const auto operation = file_.start(direction, access(bytes, position), with, "start");
    operation->wait();
    return operation->result();
  }
  void read(With with) {
    const std::uint64_t position = model_.empty() ? 0 : own_.upto(model_.size() - 1);
    const auto length = static_cast<std::ptrdiff_t>(
        std::min<std::uint64_t>(own_.upto(100), model_.size() - position));
    std::vector<std::byte> bytes(static_cast<std::size_t>(length));
    const auto count = file_.read(access(bytes, position), with, "read");
    const auto begin = model_.begin() + static_cast<std::ptrdiff_t>(position);
    EXPECT_TRUE(count.ok() && *count == bytes.size());
    EXPECT_EQ(bytes, std::vector<std::byte>(begin, begin + length));
  }

  pattern::Random common_, own_;
  SharedFile& file_;
  pattern::FileView view_;
  std::vector<std::byte> model_;
};

void play(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  pattern::Random random(seed);
  const auto all_shapes = shapes();
  const std::vector<int> shape = all_shapes[random.upto(all_shapes.size() - 1)];
  const Directory directory;
  OpenRequest request = fresh(directory / "random");
  request.hints.pario_write_behind = random.one_in(3) ? 0 : 256u << random.upto(8);
  request.hints.pario_merge_collectives = random.one_in(3) ? 0 : 256u << random.upto(8);
  request.hints.romio_cb_write = static_cast<hints::Choice>(random.upto(2));
  request.hints.romio_ds_write = static_cast<hints::Choice>(random.upto(2));
  request.hints.cb_buffer_size = 4096;
  if (shape.back() > 0 && request.hints.romio_ds_write == hints::Choice::enable)
    request.hints.romio_ds_write = hints::Choice::automatic;
  std::vector<std::byte> expected;
  std::mutex mutex;
  with_file(shape, request, [&](SharedFile& file, comm::Comm& ranks) {
    Player player(seed, file, ranks);
    for (int i = 0; i < 30; ++i) player.step();
    const std::scoped_lock lock(mutex);
    for (std::size_t i = 0; i < player.model().size(); ++i) {
      const std::uint64_t offset = player.view().offset_of(i);
      expected.resize(std::max<std::size_t>(expected.size(), offset + 1));
      expected[offset] = player.model()[i];
    }
  });
  EXPECT_EQ(contents(request.path), expected);
}

TEST(EngineKeep, AgreesWithAModelOfBytes) {
  const std::uint64_t seed = pattern::first_seed(), cases = pattern::cases(50);
  for (std::uint64_t i = 0; i < cases && !::testing::Test::HasFailure(); ++i) play(seed + i);
}

}  // namespace
}  // namespace pario::engine
