#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "core/hints/hints.hpp"

namespace pario::hints {
namespace {

struct Outcome {
  std::string settings;  ///< "key=value;key=value;"
  std::vector<std::string> rejected;
};

Outcome read(std::vector<std::string> variables, std::string_view path = "/scratch/run/data.h5") {
  std::vector<char*> environment;
  for (auto& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::vector<Rejected> rejected;
  Outcome outcome;
  for (const Setting& setting : settings_from_environment(path, environment.data(), rejected))
    outcome.settings += setting.key + '=' + setting.value + ';';
  for (const Rejected& one : rejected) outcome.rejected.push_back(one.reason);
  return outcome;
}

TEST(FileEnvironment, CraysGrammarHasGlobsAndSeveralSettings) {
  const std::string hints =
      "MPICH_MPIIO_HINTS=*:romio_cb_write=enable:romio_ds_write=disable,*.h5:cb_nodes=8,*.nc:cb_"
      "nodes=2";
  EXPECT_EQ(read({hints}).settings, "romio_cb_write=enable;romio_ds_write=disable;cb_nodes=8;");
  EXPECT_EQ(read({hints}, "a.nc").settings,
            "romio_cb_write=enable;romio_ds_write=disable;cb_nodes=2;");
  EXPECT_TRUE(read({hints}).rejected.empty());
}

TEST(FileEnvironment, PatternWithoutDirectoryIsOneForTheNameAlone) {
  EXPECT_EQ(read({"PARIO_HINTS=data.h5:cb_nodes=1"}).settings, "cb_nodes=1;");
  EXPECT_EQ(read({"PARIO_HINTS=/home/*:cb_nodes=1"}).settings, "");
  EXPECT_EQ(read({"PARIO_HINTS=/scratch/*:cb_nodes=1"}).settings, "cb_nodes=1;");
}

TEST(FileEnvironment, OwnHintsComeAfterCrays) {
  EXPECT_EQ(read({"PARIO_HINTS=*:cb_nodes=1", "MPICH_MPIIO_HINTS=*:cb_nodes=2"}).settings,
            "cb_nodes=2;cb_nodes=1;");
}

TEST(FileEnvironment, ForgottenPatternIsPointedOut) {
  EXPECT_EQ(read({"PARIO_HINTS=cb_nodes=4:cb_buffer_size=1M"}).rejected,
            std::vector<std::string>{R"(PARIO_HINTS: "cb_nodes=4:cb_buffer_size=1M" names no)"
                                     R"( file: did you mean "*:cb_nodes=4:cb_buffer_size=1M"?)"});
}

TEST(FileEnvironment, PartsThatAreNoSettingsAreRejectedAndTheOthersTaken) {
  const Outcome outcome =
      read({"PARIO_HINTS=*:cb_buffer_size=12M:verbose: cb_nodes=2:romio_cb_read=enable,,%%stdout"});
  EXPECT_EQ(outcome.settings, "cb_buffer_size=12M;romio_cb_read=enable;");
  EXPECT_EQ(outcome.rejected,
            (std::vector<std::string>{
                R"(PARIO_HINTS: "verbose": expected key=value)",
                R"(PARIO_HINTS: " cb_nodes=2": a blank too many: did you mean "cb_nodes=2"?)",
                "PARIO_HINTS: an empty part between commas",
                R"(PARIO_HINTS: "%%stdout": no key=value after the pattern)",
            }));
}

TEST(FileEnvironment, RomiosFileHasALinePerHint) {
  const std::string name = ::testing::TempDir() + "romio-hints";
  std::ofstream(name)
      << "# for all\ncb_buffer_size 1048576\n\n  romio_cb_write\tenable  \ncb_nodes\n";
  const Outcome outcome = read({"ROMIO_HINTS=" + name});
  EXPECT_EQ(outcome.settings, "cb_buffer_size=1048576;romio_cb_write=enable;");
  EXPECT_EQ(
      outcome.rejected,
      std::vector<std::string>{R"(ROMIO_HINTS: "cb_nodes": expected a key, a blank and a value)"});
  std::remove(name.c_str());
}

TEST(FileEnvironment, RomiosFileThatIsNotThereIsSaid) {
  EXPECT_EQ(read({"ROMIO_HINTS=/nowhere/hints"}).rejected,
            std::vector<std::string>{"ROMIO_HINTS: /nowhere/hints: ENOENT"});
}

TEST(FileEnvironment, CraysSwitchesAddToTheReport) {
  EXPECT_EQ(
      read({"MPICH_MPIIO_HINTS_DISPLAY=1", "MPICH_MPIIO_STATS=2", "MPICH_MPIIO_TIMERS=0"}).settings,
      "pario_report=hints statistics;");
  EXPECT_EQ(read({"PARIO_HINTS=*:pario_report=json", "MPICH_MPIIO_TIMERS=1"}).settings,
            "pario_report=json;pario_report=json timers;");
}

}  // namespace
}  // namespace pario::hints
