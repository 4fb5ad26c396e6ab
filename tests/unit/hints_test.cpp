#include "core/hints/hints.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pario::hints {
namespace {

std::vector<std::string> complaints;

HintSet from_environment(std::vector<std::string> variables) {
  complaints.clear();
  std::vector<char*> environment;
  for (auto& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  HintSet hints = defaults();
  read_environment(hints, environment.data(),
                   [](std::string_view text) { complaints.emplace_back(text); });
  return hints;
}

std::string complaint_about(std::string_view key, std::string_view value) {
  HintSet hints = defaults();
  base::Text<512> error;
  EXPECT_FALSE(set(hints, key, value, error));
  return std::string(error.view());
}

TEST(Hints, DefaultsAreValidAndThoseOfTheTable) {
  const HintSet hints = defaults();
  EXPECT_EQ(hints.trace_dir.view(), "");
  EXPECT_EQ(hints.trace_events_limit, 256u << 20);
  EXPECT_EQ(hints.trace_files_limit, 100000u);
  EXPECT_TRUE(hints.trace_messages);
  for (const HintInfo& info : table()) {
    HintSet copy = hints;
    base::Text<512> error;
    EXPECT_TRUE(set(copy, info.key, info.initial, error)) << error.view();
  }
}

TEST(Hints, EnvironmentSetsThem) {
  const HintSet hints =
      from_environment({"HOME=/root", "PARIO_TRACE_DIR=/scratch/run.pario",
                        "PARIO_TRACE_EVENTS_LIMIT=1G", "PARIO_TRACE_MESSAGES=off"});
  EXPECT_EQ(hints.trace_dir.view(), "/scratch/run.pario");
  EXPECT_EQ(hints.trace_events_limit, 1u << 30);
  EXPECT_FALSE(hints.trace_messages);
  EXPECT_TRUE(complaints.empty());
}

TEST(Hints, VariablesOfTheTableAreReadWhateverTheirPrefix) {
  EXPECT_TRUE(from_environment({"PARIO_MPIIO=1"}).mpiio);
  EXPECT_FALSE(from_environment({"PARIO_MPIIO=maybe", "PARIO_HINTS=*:cb_nodes=1"}).mpiio);
  EXPECT_EQ(complaints, std::vector<std::string>{"PARIO_MPIIO=maybe: expected yes or no"});
}

TEST(Hints, BadValueIsAComplaintAndChangesNothing) {
  const HintSet hints =
      from_environment({"PARIO_TRACE_EVENTS_LIMIT=12M:verbose", "PARIO_TRACE_FILES_LIMIT=0"});
  EXPECT_EQ(hints.trace_events_limit, 256u << 20);
  EXPECT_EQ(hints.trace_files_limit, 100000u);
  EXPECT_EQ(complaints, (std::vector<std::string>{
                            "PARIO_TRACE_EVENTS_LIMIT=12M:verbose: expected a size such as 64K, "
                            "256M or 2G, from 0 to 1099511627776",
                            "PARIO_TRACE_FILES_LIMIT=0: expected a number from 1 to 100000000",
                        }));
}

TEST(Hints, MisspeltNameIsAComplaintWithASuggestion) {
  from_environment({"PARIO_TRACE_EVENT_LIMIT=1G"});
  EXPECT_EQ(complaints,
            std::vector<std::string>{
                "unknown option PARIO_TRACE_EVENT_LIMIT: did you mean PARIO_TRACE_EVENTS_LIMIT?"});
  EXPECT_EQ(complaint_about("trace_file_limit", "1"),
            "unknown option trace_file_limit: did you mean trace_files_limit?");
  EXPECT_EQ(complaint_about("colour", "1"), "unknown option colour");
}

TEST(Hints, FlagsTakeWordsAndNothingElse) {
  HintSet hints = defaults();
  base::Text<512> error;
  EXPECT_TRUE(set(hints, "trace_messages", "0", error));
  EXPECT_FALSE(hints.trace_messages);
  EXPECT_TRUE(set(hints, "trace_messages", "true", error));
  EXPECT_TRUE(hints.trace_messages);
  EXPECT_EQ(complaint_about("trace_messages", "maybe"), "trace_messages=maybe: expected yes or no");
}

TEST(Hints, TextThatDoesNotFitIsRefused) {
  EXPECT_EQ(complaint_about("trace_dir", std::string(1024, 'x')).substr(0, 10), "trace_dir=");
}

TEST(Globs, StarCrossesDirectoriesAndQuestionMarkIsOneCharacter) {
  EXPECT_TRUE(matches("/proc/*", "/proc/self/maps"));
  EXPECT_FALSE(matches("/proc/*", "/process/x"));
  EXPECT_TRUE(matches("*.o:*/tmp?", "/a/tmp1"));
  EXPECT_FALSE(matches("*/tmp?", "/a/tmp"));
  EXPECT_TRUE(matches("*a*b*c", "xxaxxbxbc"));
  EXPECT_FALSE(matches("", "/x"));
}

TEST(Globs, FirstThatMatchesDecides) {
  EXPECT_FALSE(matches("!/dev/shm/*:/dev/*", "/dev/shm/data"));
  EXPECT_TRUE(matches("!/dev/shm/*:/dev/*", "/dev/null"));
  EXPECT_TRUE(matches("/dev/*:!/dev/shm/*", "/dev/shm/data"));
}

TEST(Globs, DefaultSparesSystemFilesButNotSharedMemory) {
  const HintSet hints = defaults();
  EXPECT_TRUE(matches(hints.trace_exclude.view(), "/sys/block/vda/stat"));
  EXPECT_FALSE(matches(hints.trace_exclude.view(), "/dev/shm/x"));
  EXPECT_FALSE(matches(hints.trace_exclude.view(), "/home/u/data"));
}

}  // namespace
}  // namespace pario::hints
