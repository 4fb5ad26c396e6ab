// The stored inputs of the fuzzers (tests/fuzz): none breaks a promise of its parser again.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "../fuzz/targets.hpp"

namespace pario::fuzz {
namespace {

struct Target {
  const char* name;
  void (*run)(Input input);
};

constexpr Target kTargets[] = {
#define PARIO_FUZZ_TARGET(name) {#name, name},
#include "../fuzz/targets.def"
#undef PARIO_FUZZ_TARGET
};

std::vector<std::filesystem::path> inputs_of(const char* target) {
  const std::filesystem::path folder = std::filesystem::path(PARIO_FUZZ_CORPUS) / target;
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(folder))
    files.assign(std::filesystem::directory_iterator(folder), {});
  std::ranges::sort(files);
  return files;
}

Bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Input bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, BreaksNoPromise) {
  const auto files = inputs_of(GetParam().name);
  ASSERT_FALSE(files.empty()) << "no inputs of " << GetParam().name;
  for (const auto& file : files) {
    SCOPED_TRACE(file);
    GetParam().run(read_bytes(file));
  }
}

TEST_P(Corpus, AnEmptyInputBreaksNoPromise) { GetParam().run({}); }

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(kTargets),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace pario::fuzz
