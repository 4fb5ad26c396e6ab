// The layouts of tests/cases/lustre.txt, as text.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "core/layout/layout.hpp"

namespace pario::layout {
namespace {

struct Case {
  std::string name, parts = {}, bulk = {}, now = {};
  std::vector<std::byte> bytes = {};
  bool wrong = false;
};

void add_bytes(std::vector<std::byte>& bytes, const std::string& text) {
  std::string digits;
  for (const char letter : text)
    if (letter != ' ') digits += letter;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(digits.substr(i, 2), nullptr, 16)));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  std::ifstream file(PARIO_CASES "/lustre.txt");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (line.empty() || line[0] == '#' || colon == line.npos) continue;
    const std::string key = line.substr(0, colon),
                      value = line.size() > colon + 2 ? line.substr(colon + 2) : "";
    if (key == "case") all.push_back({.name = value});
    if (key == "hex") add_bytes(all.back().bytes, value);
    if (key == "part") all.back().parts += value + "\n";
    if (key == "bulk") all.back().bulk = value;
    if (key == "now") all.back().now = value;
    if (key == "wrong") all.back().wrong = true;
  }
  return all;
}

std::string text_of(const Striping& striping) {
  std::string text = std::to_string(striping.targets) + " x " + std::to_string(striping.unit);
  return striping.start < 0 ? text : text + " from " + std::to_string(striping.start);
}

std::string text_of(const StripedPart& part) {
  const std::string end = part.range.end == kToTheEnd ? "end" : std::to_string(part.range.end);
  std::string text = "[" + std::to_string(part.range.begin) + ", " + end + ") ";
  if (part.on_metadata_server) return text + "on the metadata server\n";
  text += std::to_string(part.striping.targets) + " x " + std::to_string(part.striping.unit);
  if (!part.targets.empty()) text += " on";
  for (const std::uint32_t target : part.targets) text += " " + std::to_string(target);
  if (!part.pool.empty()) text += " pool " + part.pool;
  if (part.overstriped) text += " overstriped";
  if (part.waits) text += " not initialised";
  if (part.mirror != 0) text += " mirror " + std::to_string(part.mirror);
  return text + (part.stale ? " stale\n" : "\n");
}

TEST(LustreLayout, IsReadAsTheCasesSay) {
  std::size_t good = 0, wrong = 0;
  for (const Case& one : cases()) {
    const StripedFile file = read_striped_file(one.bytes);
    std::string parts;
    for (const StripedPart& part : file.parts) parts += text_of(part);
    EXPECT_EQ(parts, one.parts) << one.name;
    EXPECT_EQ(problem_of(one.bytes) != nullptr, one.wrong) << one.name;
    EXPECT_EQ(text_of(read_striping(one.bytes)), one.wrong ? text_of(Striping{}) : one.bulk)
        << one.name;
    ++(one.wrong ? wrong : good);
  }
  EXPECT_GE(good, 14U);
  EXPECT_GE(wrong, 12U);
}

TEST(LustreLayout, CutOffOrChangedAnywhereIsReadWithinItsBytes) {
  for (const Case& one : cases()) {
    for (std::size_t size = 0; size < one.bytes.size(); ++size) {
      const std::vector<std::byte> cut(one.bytes.begin(),
                                       one.bytes.begin() + static_cast<std::ptrdiff_t>(size));
      std::vector<std::byte> changed = one.bytes;
      changed[size] ^= std::byte{0xff};
      for (const auto& bytes : {cut, changed}) {
        const StripedFile file = read_striped_file(bytes);
        EXPECT_EQ(grown_part(file) == nullptr, file.parts.empty());
        static_cast<void>(read_striping(bytes));
      }
    }
  }
}

}  // namespace
}  // namespace pario::layout
