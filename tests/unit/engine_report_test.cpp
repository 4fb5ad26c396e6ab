#include "parallel/engine/report.hpp"

#include "engine_support.hpp"

namespace pario::engine {
namespace {

const HintOutcome* line_of(const std::vector<HintOutcome>& lines, const std::string& key) {
  for (const HintOutcome& line : lines)
    if (line.key == key) return &line;
  return nullptr;
}

TEST(EngineReport, ListsTheOutcomeOfEveryHint) {
  const Directory directory;
  OpenRequest request = fresh(directory / "hints");
  request.requested = {{"cb_nodes", "3"},
                       {"striping_factor", "4"},
                       {"cb_buffer_size", "1M"},
                       {"cb_buffer_size", "2M"}};
  request.rejected = {{{"cb_nodez", "4"}, "unknown hint cb_nodez: did you mean cb_nodes?"}};
  std::string reason;
  for (const hints::Setting& setting : request.requested)
    ASSERT_TRUE(hints::set(request.hints, setting, reason)) << reason;
  with_file(std::vector<int>{0}, request, [](SharedFile& file, comm::Comm&) {
    const std::vector<HintOutcome> lines = file.audit();
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_EQ(line_of(lines, "cb_nodes")->effective, "3");
    EXPECT_EQ(line_of(lines, "cb_nodes")->reason, "");
    EXPECT_NE(line_of(lines, "striping_factor")->reason, "") << "this file system has no stripes";
    EXPECT_EQ(line_of(lines, "cb_nodez")->applied, "");
    EXPECT_EQ(lines[2].reason, "another setting of the same hint came later");
    EXPECT_EQ(lines[3].reason, "");
  });
}

TEST(EngineReport, ShowsTheWindowsAndNodesThatCallsUsed) {
  const Directory directory;
  OpenRequest request = fresh(directory / "used");
  request.requested = {{"cb_nodes", "3"}, {"cb_buffer_size", "16M"}, {"romio_cb_write", "enable"}};
  std::string reason;
  for (const hints::Setting& setting : request.requested)
    ASSERT_TRUE(hints::set(request.hints, setting, reason)) << reason;
  with_file(std::vector<int>{0, 0}, request, [](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> bytes(4'000'000);
    pattern::Access access = plain(bytes, 0);
    access.view = make_alternating_view(ranks.rank(), 2, 1000);
    fill(access);
    EXPECT_EQ(line_of(file.audit(), "cb_nodes")->effective, "3") << "no call yet";
    EXPECT_OK(file.write(access, With::together, "write_at_all"));
    const HintOutcome nodes = *line_of(file.audit(), "cb_nodes");
    EXPECT_EQ(nodes.effective, "1");
    EXPECT_NE(nodes.reason, "");
    const HintOutcome size = *line_of(file.audit(), "cb_buffer_size");
    EXPECT_LT(std::stoull(size.effective), 16u << 20);
    EXPECT_NE(size.reason, "");
    EXPECT_EQ(line_of(file.audit(), "romio_cb_write")->reason, "");
  });
}

TEST(EngineReport, ExplainsHintsOfOtherMpiIoWithoutEffect) {
  const Directory directory;
  OpenRequest request = fresh(directory / "foreign");
  request.requested = {{"cb_config_list", "*:1"}, {"romio_cb_pfr", "enable"}};
  with_file(std::vector<int>{0}, request, [](SharedFile& file, comm::Comm&) {
    const HintOutcome line = *line_of(file.audit(), "cb_config_list");
    EXPECT_EQ(line.applied, "");
    EXPECT_EQ(line.reason,
              "cb_config_list has no meaning here because all ranks of a node fill its windows "
              "together; cb_nodes sets the number of aggregator nodes");
    EXPECT_NE(line_of(file.audit(), "romio_cb_pfr")->reason.find("fixed nodes"), std::string::npos);
  });
}

/// The text on stderr after two ranks have written a file together.
std::string report_at_close(const std::string& what) {
  const Directory directory;
  OpenRequest request = fresh(directory / "reported");
  request.hints.pario_report = what;
  request.requested = {{"cb_nodes", "0"}};
  ::testing::internal::CaptureStderr();
  with_file(std::vector<int>{0, 1}, request, [](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> buffer(5000);
    EXPECT_OK(file.write(plain(buffer, static_cast<std::uint64_t>(ranks.rank()) * 5000),
                         With::together, "write_all"));
  });
  return ::testing::internal::GetCapturedStderr();
}

TEST(EngineReport, IsSilentUnlessAsked) { EXPECT_EQ(report_at_close(""), ""); }

TEST(EngineReport, HasTheRequestedParts) {
  const std::string all = report_at_close("all");
  for (const char* part : {"2 ranks on 2 nodes", "cb_nodes", "collective_writes       2",
                           "bytes_written           10000", "timers", "open", "net "})
    EXPECT_NE(all.find(part), std::string::npos) << part << " in\n" << all;
  const std::string timers = report_at_close("timers");
  EXPECT_EQ(timers.find("collective_writes"), std::string::npos) << timers;
}

TEST(EngineReport, IsJsonWhenAsked) {
  const std::string json = report_at_close("json");
  EXPECT_TRUE(json.starts_with(R"({"note":"mpiio","path":")")) << json;
  EXPECT_NE(json.find(R"("bytes_written":10000)"), std::string::npos) << json;
  EXPECT_EQ(std::ranges::count(json, '{'), std::ranges::count(json, '}'));
}

}  // namespace
}  // namespace pario::engine
