// Specifications of streams: the grammar of IOBUF_PARAMS in production scripts, and the messages
// about their typos.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/hints/hints.hpp"

namespace {

using namespace pario;
using hints::StdioMode;
using hints::StreamHints;

StreamHints of(std::string_view specifications, std::string_view path) {
  StreamHints hints{};
  EXPECT_TRUE(hints::stream_hints_of(specifications, path, hints))
      << specifications << " says nothing of " << path;
  return hints;
}

bool silent(std::string_view specifications, std::string_view path) {
  StreamHints hints{};
  return !hints::stream_hints_of(specifications, path, hints);
}

std::vector<std::string> said;
std::vector<std::string> complaints(std::string_view specifications) {
  said.clear();
  hints::check_stream_specifications("IOBUF_PARAMS", specifications,
                                     [](std::string_view text) { said.emplace_back(text); });
  return said;
}

TEST(StreamHints, ProductionSpecificationsMeanWhatTheyMeantOnCray) {
  EXPECT_EQ(of("*:size=8M", "/scratch/out.dat").size, 8u << 20);
  const auto mesh = of("*mesh.e:size=1M:count=64:ignoreflush:lazyclose,%stdout", "/scratch/mesh.e");
  EXPECT_EQ(mesh.count, 64u);
  EXPECT_TRUE(mesh.ignoreflush);
  EXPECT_TRUE(mesh.lazyclose);
  const auto many = of("*:size=32M:count=4:vbuffer_count=4096:prefetch=1", "x");
  EXPECT_EQ(many.size, 32u << 20);
  EXPECT_EQ(many.prefetch, 1u);
  for (const char* one : {"*:size=8M", "*mesh.e:size=1M:count=64:ignoreflush:lazyclose,%stdout",
                          "*:size=32M:count=4:vbuffer_count=4096:prefetch=1"})
    EXPECT_TRUE(complaints(one).empty()) << one << ": " << said.front();
}

TEST(StreamHints, TheFirstGlobThatMatchesDecides) {
  EXPECT_EQ(of("*.log:size=64K,*:size=8M", "/tmp/a.log").size, 64u << 10);
  EXPECT_EQ(of("*.log:size=64K,*:size=8M", "/tmp/a.dat").size, 8u << 20);
  EXPECT_TRUE(silent("*.log:size=64K", "/tmp/a.dat"));
  EXPECT_TRUE(silent("/scratch/*", "/tmp/a.dat"));
}

TEST(StreamHints, StandardStreamsAreMeantByTheirNamesOnly) {
  EXPECT_TRUE(silent("*", "%stdout"));
  EXPECT_TRUE(silent("%stdout", "/tmp/x"));
  EXPECT_EQ(of("%stdout:stdio=full", "%stdout").stdio, StdioMode::full);
}

TEST(StreamHints, TyposOfProductionScriptsAreNamedWithWhatMayBeMeant) {
  const struct {
    const char *specification, *meant;
  } cases[] = {
      {"12M:verbose", "did you mean *:size=12M"}, {"%%stdout", "did you mean %stdout"},
      {"*:size= 1M", "a blank too many"},         {"*:szie=1M", "did you mean size"},
      {"*:12M", "did you mean size=12M"},         {"*:size", "a value was expected"},
      {"*:size=1Q", "a size such as 64K"},        {"*:count=0", "a number from 1 to 1024"},
      {"*:stdio=fully", "full, line, none"},      {"*, *.log:size=1M", "a blank too many"},
      {"*:size=1M,count=4", "a colon in front"},  {"%stdlog", "expected %stdin"},
  };
  for (const auto& [specification, meant] : cases) {
    const auto found = complaints(specification);
    ASSERT_EQ(found.size(), 1u) << specification;
    EXPECT_NE(found.front().find(meant), std::string::npos) << found.front();
    EXPECT_NE(found.front().find("IOBUF_PARAMS: "), std::string::npos);
  }
}

TEST(StreamHints, WhatIsMalformedMeansNothingAndTheRestStillHolds) {
  const auto hints = of("*:size= 1M:count=7", "x");
  EXPECT_EQ(hints.size, hints::default_stream_hints().size);
  EXPECT_EQ(hints.count, 7u);
}

}  // namespace
