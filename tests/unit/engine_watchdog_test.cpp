// The watchdog (hint pario_watchdog) and the detection of calls that do not match.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <fstream>
#include <sstream>
#include <string_view>

#include "engine_support.hpp"

namespace pario::engine {
namespace {

using Ranks = std::vector<int>;

/// The text on the captured standard error, which is a file.
std::string captured_text() {
  std::ifstream captured("/proc/self/fd/2");
  std::ostringstream text;
  text << captured.rdbuf();
  return text.str();
}

/// Waits until the watchdog has printed a line, at most for the time limit of the test.
void wait_for_the_watchdog() {
  while (captured_text().find("has waited") == std::string::npos) ::usleep(5'000);
}

OpenRequest make_watched_request(const std::string& path, const char* seconds = "0.1") {
  OpenRequest request = fresh(path);
  std::string reason;
  EXPECT_TRUE(hints::set(request.hints, {"pario_watchdog", seconds}, reason)) << reason;
  return request;
}

base::Status write_all(SharedFile& file, const comm::Comm& ranks) {
  std::vector<std::byte> buffer(10);
  const auto begin = static_cast<std::uint64_t>(ranks.rank()) * 10;
  return file.write(plain(buffer, begin), With::together, "MPI_File_write_all").status();
}

TEST(Watchdog, ReportsAfterSixtySecondsByDefault) {
  for (const hints::Setting& setting : hints::settings_of(hints::default_file_hints()))
    EXPECT_EQ(setting.value, setting.key == "pario_watchdog" ? "60" : setting.value);
}

using CollectiveCall = std::function<base::Status(SharedFile& file, comm::Comm& ranks)>;

/// All ranks make the call, those of `late` after the watchdog's report. Returns the text on
/// standard error. The calls before have the usual time limit: they may take long on a busy
/// machine.
std::string text_of_late(const Ranks& node_of, const Ranks& late, const CollectiveCall& call) {
  const Directory directory;
  const OpenRequest request = fresh(directory / "file");
  const hints::FileHints watched = make_watched_request(request.path, "0.5").hints;
  // Ranks that are slow to get here must not look late.
  std::barrier punctual(static_cast<std::ptrdiff_t>(node_of.size() - late.size()));
  ::testing::internal::CaptureStderr();
  comm::run_as_threads(node_of, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file = SharedFile::open(ranks, request);
    ASSERT_TRUE(file.ok()) << file.error().text();
    EXPECT_OK(write_all(**file, *ranks));
    EXPECT_OK((*file)->set_hints(watched));
    if (std::ranges::find(late, ranks->rank()) != late.end())
      wait_for_the_watchdog();
    else
      punctual.arrive_and_wait();
    EXPECT_OK(call(**file, *ranks));
    EXPECT_OK((*file)->close());
  });
  std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find(" of " + request.path + " has waited 0.5 s for "), text.rfind(" of "))
      << "one line: " << text;
  return text;
}

TEST(Watchdog, NamesArrivedAndMissingRanks) {
  struct Case {
    Ranks node_of, late;
    const char* expected;
  };
  const Case cases[] = {
      {{0, 0, 0}, {2}, "for rank 2; ranks 0 and 1 have come"},
      {{0, 0, 0, 0, 0, 0}, {0, 3}, "for ranks 0 and 3; ranks 1, 2, 4 and 5 have come"},
      {{0, 0, 0, 0, 0, 0}, {5}, "for rank 5; ranks 0-4 have come"},
      {{0, 0, 1, 1}, {3}, "for rank 3; ranks 0-2 have come"},
      {{0, 0, 1, 1}, {2}, "for rank 2; ranks 0, 1 and 3 have come"},
      {{0, 0, 1, 1}, {0}, "for rank 0; ranks 1-3 have come"},
      {{0, 0, 1, 1}, {2, 3}, "for ranks 2 and 3; ranks 0 and 1 have come"},
      {{0, 1, 0, 2, 1, 2}, {1, 4, 5}, "for ranks 1, 4 and 5; ranks 0, 2 and 3 have come"},
  };
  for (const Case& one : cases) {
    const std::string text = text_of_late(one.node_of, one.late, write_all);
    EXPECT_NE(text.find("pario: MPI_File_write_all of "), std::string::npos) << text;
    EXPECT_NE(text.find(one.expected), std::string::npos) << text;
  }
}

TEST(Watchdog, WatchesEveryCollectiveCall) {
  const std::pair<const char*, CollectiveCall> calls[] = {
      {"MPI_File_close", [](SharedFile& file, comm::Comm&) { return file.close(); }},
      {"MPI_File_set_size", [](SharedFile& file, comm::Comm&) { return file.resize(1000); }},
      {"MPI_File_preallocate",
       [](SharedFile& file, comm::Comm&) { return file.preallocate(1000); }},
      {"MPI_File_sync", [](SharedFile& file, comm::Comm&) { return file.sync(); }},
      {"MPI_File_set_info",
       [](SharedFile& file, comm::Comm&) { return file.set_hints(file.hints()); }},
      {"MPI_File_set_atomicity",
       [](SharedFile& file, comm::Comm&) { return file.set_atomic(true); }},
      {"MPI_File_iwrite_all",
       [](SharedFile& file, comm::Comm& ranks) {
         std::vector<std::byte> buffer(10);
         const auto begin = static_cast<std::uint64_t>(ranks.rank()) * 10;
         const auto started = file.start(plan::Direction::write, plain(buffer, begin),
                                         With::together, "MPI_File_iwrite_all");
         started->wait();
         return started->result().status();
       }},
  };
  for (const auto& [name, call] : calls) {
    const std::string text = text_of_late({0, 0, 0}, {1}, call);
    EXPECT_NE(text.find(std::string(name) + " of "), std::string::npos) << name << ": " << text;
    EXPECT_NE(text.find("for rank 1; ranks 0 and 2 have come"), std::string::npos)
        << name << ": " << text;
  }
}

TEST(Watchdog, WatchesTheOpeningOfAFile) {
  for (const Ranks& node_of : {Ranks{0, 0, 0}, Ranks{0, 0, 1}}) {
    const Directory directory;
    const OpenRequest request = make_watched_request(directory / "file");
    ::testing::internal::CaptureStderr();
    comm::run_as_threads(node_of, [&](std::shared_ptr<comm::Comm> ranks) {
      if (ranks->rank() == 1) wait_for_the_watchdog();
      auto file = SharedFile::open(ranks, request);
      ASSERT_TRUE(file.ok());
      EXPECT_OK((*file)->close());
    });
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find("MPI_File_open of " + request.path), std::string::npos) << text;
    EXPECT_NE(text.find("for rank 1; ranks 0 and 2 have come"), std::string::npos) << text;
  }
}

TEST(Watchdog, ReportsTheLastCallOfAMissingRank) {
  const std::string text =
      text_of_late({0, 0}, {1}, [](SharedFile& file, comm::Comm&) { return file.sync(); });
  EXPECT_NE(text.find("rank 1: its last call on this file was MPI_File_set_info"),
            std::string::npos)
      << text;
}

TEST(Watchdog, NamesARankThatHasRunAheadInAnotherCall) {
  const std::string text = text_of_late({0, 0}, {}, [](SharedFile& file, comm::Comm& ranks) {
    for (int call = 0; call < 10; ++call) EXPECT_OK(write_all(file, ranks));
    if (ranks.rank() == 0) EXPECT_OK(write_all(file, ranks));  // does not wait for rank 1
    if (ranks.rank() == 0) wait_for_the_watchdog();
    return file.sync() ? base::Error{} : base::Status();  // they differ by one call
  });
  EXPECT_NE(text.find("MPI_File_sync of "), std::string::npos) << text;
  EXPECT_NE(text.find("for rank 0; rank 1 has come (rank 0: its last call on this file was "
                      "MPI_File_write_all)"),
            std::string::npos)
      << text;
}

TEST(Watchdog, SaysThatRanksOfASilentNodeAreOnAnotherNode) {
  const std::string text = text_of_late({0, 0, 1, 1}, {0, 2, 3}, write_all);
  EXPECT_NE(text.find("(rank 0: its last call on this file was MPI_File_set_info; "
                      "ranks 2 and 3: on another node)"),
            std::string::npos)
      << text;
}

TEST(Watchdog, IsSilentIfItIsOff) {
  const Directory directory;
  OpenRequest request = make_watched_request(directory / "file", "0");
  std::string reason;
  ASSERT_TRUE(hints::set(request.hints, {"pario_patience", "3"}, reason)) << reason;
  ::testing::internal::CaptureStderr();
  comm::run_as_threads(Ranks{0, 0}, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file = SharedFile::open(ranks, request);
    ASSERT_TRUE(file.ok());
    while (ranks->rank() == 1 && !ranks->has_failed()) ::usleep(5'000);
    EXPECT_EQ(write_all(**file, *ranks).error().number, ETIMEDOUT);
    EXPECT_FALSE((*file)->close().ok());
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Watchdog, IsSilentWhileAllRanksWaitForASlowFile) {
  const Directory directory;
  const OpenRequest request = fresh(directory / "file");
  const hints::FileHints watched = make_watched_request(request.path, "1").hints;
  ::testing::internal::CaptureStderr();
  comm::run_as_threads(Ranks{0, 0, 1}, [&](std::shared_ptr<comm::Comm> ranks) {
    const Opener opener =
        [](const file::OpenRequest& wanted) -> base::Result<std::unique_ptr<file::File>> {
      auto file = file::open(wanted);
      if (!file) return file;
      return file::make_faulty(std::move(*file), [](const char* name, base::Extent) {
        if (std::string_view(name) == "write") std::this_thread::sleep_for(std::chrono::seconds(3));
        return file::Fault{};
      });
    };
    auto file = SharedFile::open(ranks, request, opener);
    ASSERT_TRUE(file.ok());
    EXPECT_OK((*file)->set_hints(watched));
    EXPECT_OK(write_all(**file, *ranks));
    EXPECT_OK((*file)->close());
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

/// Compares the errors of the ranks when rank 0 writes and the others make `call`; then all close
/// the file.
void expect_mismatch(const Ranks& node_of, const char* name, const CollectiveCall& call) {
  const Directory directory;
  comm::run_as_threads(node_of, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file = SharedFile::open(ranks, make_watched_request(directory / "file"));
    ASSERT_TRUE(file.ok());
    const base::Status status =
        ranks->rank() == 0 ? write_all(**file, *ranks) : call(**file, *ranks);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_NE(status.error().detail.find("rank 0 is in MPI_File_write_all, rank"),
              std::string::npos)
        << status.error().text();
    EXPECT_NE(status.error().detail.find(name), std::string::npos) << status.error().text();
    if (std::string_view(name) == "MPI_File_close") {
      EXPECT_EQ((*file)->close().ok(), ranks->rank() != 0) << "the others have left";
    } else {
      EXPECT_OK(write_all(**file, *ranks));
      EXPECT_OK((*file)->close());
    }
  });
}

TEST(Mismatch, OfDifferentCallsIsAnErrorThatNamesThem) {
  for (const Ranks& node_of : {Ranks{0, 0}, Ranks{0, 0, 1}}) {
    expect_mismatch(node_of, "MPI_File_close",
                    [](SharedFile& file, comm::Comm&) { return file.close(); });
    expect_mismatch(node_of, "MPI_File_sync",
                    [](SharedFile& file, comm::Comm&) { return file.sync(); });
    expect_mismatch(node_of, "MPI_File_set_size",
                    [](SharedFile& file, comm::Comm&) { return file.resize(10); });
    expect_mismatch(node_of, "MPI_File_set_info",
                    [](SharedFile& file, comm::Comm&) { return file.set_hints(file.hints()); });
  }
}

}  // namespace
}  // namespace pario::engine
