// Runs tests/cases/*.case; tests/cases/README.md describes their lines.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "parallel/plan/plan.hpp"

namespace pario::plan {
namespace {

std::uint64_t size_of(const std::string& text) { return base::parse_byte_size(text).value_or(0); }

/// "at 512 step 4:64 2:5120": rank r begins at 512 + (r % 4) * 64 + (r / 4 % 2) * 5120.
std::uint64_t place_of(std::uint64_t rank, std::istringstream& words) {
  std::string word;
  words >> word;
  std::uint64_t offset = size_of(word);
  while (words >> word) {
    const auto colon = word.find(':');
    if (colon == word.npos) continue;
    const std::uint64_t count = std::stoull(word.substr(0, colon));
    offset += rank % count * size_of(word.substr(colon + 1));
    rank /= count;
  }
  return offset;
}

/// The part of a line between two words, or to the end.
std::string between(const std::string& line, const std::string& first, const std::string& last) {
  const auto begin = line.find(first);
  if (begin == line.npos) return {};
  const auto from = begin + first.size();
  const auto end = line.find(last, from);
  return line.substr(from, end == line.npos ? end : end - from);
}

/// One case; applies its lines in order.
class Case {
 public:
  void apply(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "ranks") return set_ranks(words);
    if (verb == "layout") return set_layout(words);
    if (verb == "hints") return set_hints(words);
    if (verb == "write" || verb == "read")
      return call(verb == "write" ? Direction::write : Direction::read, line);
    const std::string expected = line.substr(verb.size() + 1);
    EXPECT_EQ(actual(verb), expected);
  }

 private:
  /// Formats the result of the last calls like the line of the case.
  std::string actual(const std::string& verb) const {
    if (verb == "plan") return plans_.back().text();
    if (verb == "why") return plans_.back().why;
    if (verb == "owners") return owners(plans_.back());
    if (verb == "requests") return std::to_string(requests_);
    return verb == "independent" ? independent_text() : "unknown line";
  }

  void set_ranks(std::istringstream& words) {
    std::size_t ranks = 0, nodes = 1;
    std::string on;
    words >> ranks >> on >> nodes;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      node_of_.push_back(static_cast<int>(rank * nodes / ranks));
  }

  void set_layout(std::istringstream& words) {
    std::string kind, unit;
    words >> kind >> unit >> layout_.targets;
    layout_.kind = layout::kind_of_name(kind);
    layout_.unit = size_of(unit);
    layout_.direct_write = layout_.direct_read = 0;
    std::string word, write, read;
    if (words >> word >> write >> read) {
      layout_.direct_write = size_of(write);
      layout_.direct_read = size_of(read);
    }
  }

  void set_hints(std::istringstream& words) {
    std::string word, reason;
    while (words >> word) {
      const auto equals = word.find('=');
      EXPECT_TRUE(hints::set(hints_, {word.substr(0, equals), word.substr(equals + 1)}, reason))
          << reason;
    }
  }

  pattern::Summary summary(std::uint64_t rank, const std::string& line) const {
    const std::string verb = line.substr(0, line.find(' ') + 1),
                      memory = between(line, " from ", "#");
    pattern::Access access;
    access.view.filetype = pattern::TypeMap::parse(between(line, verb, " at ")).value();
    if (!memory.empty()) access.memory = pattern::TypeMap::parse(memory).value();
    std::istringstream place(between(line, " at ", " of "));
    access.view.displacement = place_of(rank, place);
    access.bytes = access.view.filetype.size();
    return pattern::summarise(access);
  }

  void call(Direction direction, const std::string& line) {
    const std::string only = between(line, " of ", " ");
    std::vector<pattern::Summary> ranks;
    for (std::size_t rank = 0; rank < node_of_.size(); ++rank)
      ranks.push_back(only.empty() || rank == std::stoull(only) ? summary(rank, line)
                                                                : pattern::Summary{});
    plans_.push_back(make_plan({direction, ranks, node_of_, layout_}, hints_));
    requests_ += plans_.back().way == Way::windows ? plans_.back().windows() : 0;
    for (const auto& access : ranks) {
      if (plans_.back().way == Way::direct) requests_ += access.pieces;
      count(plan_independent(direction, access, layout_, hints_), access);
    }
  }

  void count(const IndependentPlan& plan, const pattern::Summary& access) {
    if (access.bytes == 0) return;
    if (plan.way == Independent::contiguous) ++contiguous_;
    if (plan.way == Independent::list) listed_ += access.pieces;
    if (plan.way == Independent::sieve) sieved_ += (access.span.length() - 1) / plan.window + 1;
  }

  std::string independent_text() const {
    return "contiguous " + std::to_string(contiguous_) + " list " + std::to_string(listed_) +
           " sieve " + std::to_string(sieved_);
  }

  /// Nodes of the first windows.
  static std::string owners(const Plan& plan) {
    std::string text;
    for (std::uint64_t w = 0; w < std::min<std::uint64_t>(plan.windows(), 12); ++w)
      text += (w > 0 ? " " : "") + std::to_string(plan.owner(plan.first_window() + w));
    return text;
  }

  std::vector<int> node_of_;
  layout::StripeLayout layout_;
  hints::FileHints hints_ = hints::default_file_hints();
  std::vector<Plan> plans_;
  std::uint64_t requests_ = 0;
  std::uint64_t contiguous_ = 0, listed_ = 0, sieved_ = 0;
};

std::size_t run_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line, title;
  Case current;
  std::size_t cases = 0;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    SCOPED_TRACE(path.filename().string() + ":" + std::to_string(number) + ": " + title);
    if (line.starts_with("case ")) {
      title = line;
      current = Case();
      ++cases;
    } else {
      current.apply(line);
    }
  }
  return cases;
}

TEST(Cases, AllGiveTheirPlans) {
  std::size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PARIO_CASES))
    if (entry.path().extension() == ".case") cases += run_file(entry.path());
  EXPECT_GE(cases, 15u);
}

}  // namespace
}  // namespace pario::plan
