// Random layouts, views and accesses against a model of single bytes. The seed is printed;
// PARIO_TEST_SEED sets it, PARIO_TEST_CASES sets the number of cases.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "pattern_model.hpp"

namespace pario::pattern {
namespace {

using base::Extent;
using Runs = std::vector<std::pair<std::int64_t, std::uint64_t>>;

Runs cursor_runs(Cursor cursor) {
  Runs runs;
  for (Run run = cursor.current(); run.length > 0; run = cursor.current()) {
    runs.emplace_back(run.offset, run.length);
    cursor.advance(run.length);
  }
  return runs;
}

void expect_facts(const Sample& sample) {
  const auto& [layout, model] = sample;
  ASSERT_EQ(layout.size(), model.bytes.size());
  EXPECT_EQ(layout.lower(), model.lower);
  EXPECT_EQ(layout.extent(), model.extent);
  const Runs runs = model_runs(model, 0, model.bytes.size());
  EXPECT_EQ(layout.pieces(), runs.size());
  if (runs.empty()) return;
  const auto [low, high] = std::minmax_element(model.bytes.begin(), model.bytes.end());
  EXPECT_EQ(layout.true_lower(), *low);
  EXPECT_EQ(layout.true_extent(), *high + 1 - *low);
  EXPECT_EQ(
      layout.overlapping(),
      std::set<std::int64_t>(model.bytes.begin(), model.bytes.end()).size() < model.bytes.size());
  EXPECT_EQ(layout.contiguous(), runs.size() == 1 && runs[0].first == 0 &&
                                     layout.extent() == static_cast<std::int64_t>(layout.size()));
  for (const auto& [offset, length] : runs) {
    EXPECT_EQ(static_cast<std::uint64_t>(offset) % layout.granule(), 0u);
    EXPECT_EQ(length % layout.granule(), 0u);
  }
}

void expect_text(const TypeMap& layout) {
  base::Result<TypeMap> again = TypeMap::parse(layout.text());
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(*again, layout) << layout.text() << " became " << again->text();
  EXPECT_EQ(again->text(), layout.text());
}

void expect_walk(const Sample& sample, Random& random) {
  const std::uint64_t size = sample.model.bytes.size();
  if (size == 0) return;
  const std::uint64_t position = random.upto(3 * size), bytes = random.upto(3 * size);
  EXPECT_EQ(cursor_runs(Cursor(sample.layout, position, bytes)),
            model_runs(sample.model, position, position + bytes));
  Cursor cursor(sample.layout, position, bytes);
  for (std::uint64_t at = position; at < position + bytes;) {
    ASSERT_EQ(cursor.current().offset, sample.model.at(at));
    EXPECT_EQ(cursor.position(), at);
    EXPECT_EQ(cursor.remaining(), position + bytes - at);
    const std::uint64_t step = 1 + random.upto(cursor.current().length - 1);
    cursor.advance(step);
    at += step;
  }
  EXPECT_EQ(cursor.current().length, 0u);
  EXPECT_EQ(cursor.remaining(), 0u);
}

TEST(RandomLayouts, AreTheirBytes) {
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + cases(2000) && !testing::Test::HasFailure();
       ++seed) {
    Random random(seed);
    const Sample sample = random.any(static_cast<int>(random.between(0, 4)));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + sample.layout.text());
    if (sample.model.bytes.size() > 20000) continue;
    expect_facts(sample);
    expect_text(sample.layout);
    expect_walk(sample, random);
  }
}

/// An access, and the offset of each of its bytes.
struct Case {
  Sample memory, file;
  Access access;
  std::vector<std::byte> user;
  std::vector<std::uint64_t> file_bytes, memory_bytes;
  std::uint64_t end = 0;  ///< past the last byte in the file
};

Case random_case(Random& random, bool any_file) {
  Case c;
  const std::int64_t unit = random.one_in(3) ? 8 : 1;
  do c.memory = random.any(static_cast<int>(random.between(0, 3)));
  while (c.memory.model.bytes.empty() || c.memory.model.bytes.size() > 2000);
  do
    c.file =
        any_file ? random.any(2) : random.ascending(static_cast<int>(random.between(0, 3)), unit);
  while (c.file.model.bytes.empty() || c.file.model.bytes.size() > 2000);
  const std::uint64_t size = c.file.model.bytes.size();
  c.access.memory = c.memory.layout;
  c.access.view.filetype = c.file.layout;
  c.access.view.displacement =
      any_file ? 1000000 : static_cast<std::uint64_t>(unit) * random.upto(100);
  c.access.position =
      random.upto(2 * size) / static_cast<std::uint64_t>(unit) * static_cast<std::uint64_t>(unit);
  c.access.bytes =
      random.upto(4 * size) / static_cast<std::uint64_t>(unit) * static_cast<std::uint64_t>(unit);
  std::int64_t low = 0, high = 0;
  for (std::uint64_t i = 0; i < c.access.bytes; ++i) {
    low = std::min(low, c.memory.model.at(i));
    high = std::max(high, c.memory.model.at(i) + 1);
    c.file_bytes.push_back(c.access.view.displacement +
                           static_cast<std::uint64_t>(c.file.model.at(c.access.position + i)));
    c.end = std::max(c.end, c.file_bytes.back() + 1);
  }
  for (std::uint64_t i = 0; i < c.access.bytes; ++i)
    c.memory_bytes.push_back(static_cast<std::uint64_t>(c.memory.model.at(i) - low));
  c.user.resize(static_cast<std::size_t>(high - low));
  for (std::byte& byte : c.user) byte = static_cast<std::byte>(random.between(1, 255));
  c.access.buffer = c.user.data() - low;
  return c;
}

std::string describe(const Case& c) {
  return c.access.memory.text() + " to " + c.access.view.filetype.text() + " at " +
         std::to_string(c.access.view.displacement) + ", bytes " +
         std::to_string(c.access.position) + " + " + std::to_string(c.access.bytes);
}

/// Makes windows that cover the file up to the end of the access, in ascending or any order;
/// multiples of `granule`.
std::vector<Extent> windows(const Case& c, std::uint64_t granule, Random& random) {
  std::vector<Extent> all;
  const std::uint64_t begin =
      c.file_bytes.empty() ? 0 : *std::min_element(c.file_bytes.begin(), c.file_bytes.end());
  const std::uint64_t most = 1 + random.upto((c.end - begin) / granule);
  for (std::uint64_t at = begin / granule * granule; at < c.end;) {
    const std::uint64_t length = granule * (1 + random.upto(most));
    all.push_back(Extent::at(at, length));
    at += length;
  }
  if (!all.empty() && random.one_in(2))
    all.back().end = std::max(all.back().begin + 1, c.end - random.upto(1));
  const bool shuffle = random.one_in(2);
  for (std::size_t i = all.size(); shuffle && i > 1; --i)
    std::swap(all[i - 1], all[random.upto(i - 1)]);
  return all;
}

/// Returns the access's bytes in an extent by file offset; later pieces win.
std::map<std::uint64_t, std::byte> bytes_in(const Case& c, Extent stretch) {
  std::map<std::uint64_t, std::byte> bytes;
  for (std::size_t i = 0; i < c.file_bytes.size(); ++i)
    if (stretch.contains(c.file_bytes[i])) bytes[c.file_bytes[i]] = c.user[c.memory_bytes[i]];
  return bytes;
}

std::uint64_t count_inside(const Case& c, Extent stretch) {
  return static_cast<std::uint64_t>(
      std::count_if(c.file_bytes.begin(), c.file_bytes.end(),
                    [&](std::uint64_t at) { return stretch.contains(at); }));
}

std::string bits_text(const std::vector<std::uint64_t>& words, std::uint64_t bits) {
  std::string text;
  for (std::uint64_t i = 0; i < words.size() * 64; ++i)
    text += words[i / 64] >> (i % 64) & 1 ? (i < bits ? '1' : '!') : '0';
  return text;
}

std::string wanted_bits(const Case& c, Extent stretch, std::uint64_t granule) {
  std::string text(coverage_words(stretch.length(), granule) * 64, '0');
  for (const std::uint64_t at : c.file_bytes)
    if (stretch.contains(at)) text[(at - stretch.begin) / granule] = '1';
  return text;
}

void expect_gather(const Case& c, Walker& walker, Extent stretch, std::uint64_t granule,
                   bool copies, Stores stores) {
  std::vector<std::byte> image(stretch.length(), std::byte{0});
  std::vector<std::uint64_t> words(coverage_words(stretch.length(), granule));
  const Coverage coverage{words.data(), granule};
  const std::uint64_t bytes = copies ? walker.gather(stretch, image.data(), coverage, stores)
                                     : walker.mark(stretch, coverage);
  EXPECT_EQ(bytes, count_inside(c, stretch));
  EXPECT_EQ(bits_text(words, (stretch.length() + granule - 1) / granule),
            wanted_bits(c, stretch, granule));
  if (!copies) return;
  std::vector<std::byte> expected(stretch.length(), std::byte{0});
  for (const auto& [at, byte] : bytes_in(c, stretch)) expected[at - stretch.begin] = byte;
  EXPECT_EQ(image, expected);
}

void expect_scatter(Case& c, Walker& walker, const std::vector<Extent>& all) {
  std::vector<std::byte> expected(c.user.size());
  std::fill(c.user.begin(), c.user.end(), std::byte{0});
  for (const Extent stretch : all) {
    std::vector<std::byte> image(stretch.length());
    for (std::uint64_t i = 0; i < image.size(); ++i)
      image[i] = static_cast<std::byte>((stretch.begin + i) * 7 % 251 + 1);
    EXPECT_EQ(walker.scatter(stretch, image.data()), count_inside(c, stretch));
    for (std::size_t i = 0; i < c.file_bytes.size(); ++i)
      if (stretch.contains(c.file_bytes[i]))
        expected[c.memory_bytes[i]] = image[c.file_bytes[i] - stretch.begin];
    EXPECT_EQ(c.user, expected);
  }
}

/// Copies the runs of next() into an image and compares it with the expected bytes.
void expect_next(const Case& c, Walker& walker, Extent stretch, std::size_t room) {
  std::vector<std::byte> image(stretch.length()), expected(stretch.length());
  for (const auto& [at, byte] : bytes_in(c, stretch)) expected[at - stretch.begin] = byte;
  std::vector<std::span<std::byte>> memory(room);
  std::size_t used = 0;
  for (;;) {
    const Extent run = walker.next(stretch, memory, used);
    if (run.empty()) break;
    ASSERT_LE(used, room);
    ASSERT_TRUE(run.begin >= stretch.begin && run.end <= stretch.end);
    std::uint64_t at = run.begin - stretch.begin;
    for (std::size_t i = 0; i < used; at += memory[i++].size())
      std::copy(memory[i].begin(), memory[i].end(), image.begin() + static_cast<long>(at));
    ASSERT_EQ(at, run.end - stretch.begin);
  }
  EXPECT_EQ(image, expected);
  EXPECT_TRUE(walker.next(stretch, memory, used).empty());
}

void expect_summary(const Case& c) {
  const Summary summary = summarise(c.access);
  ASSERT_EQ(summary.bytes, c.access.bytes);
  const Runs file = model_runs(c.file.model, c.access.position, c.access.position + c.access.bytes);
  EXPECT_EQ(summary.pieces, file.size());
  EXPECT_EQ(summary.memory_pieces, model_runs(c.memory.model, 0, c.access.bytes).size());
  if (c.access.bytes == 0) return;
  EXPECT_EQ(summary.span,
            (Extent{*std::min_element(c.file_bytes.begin(), c.file_bytes.end()), c.end}));
  std::uint64_t bits = kMaxGranule;
  for (const auto& [offset, length] : file)
    bits |= (c.access.view.displacement + static_cast<std::uint64_t>(offset)) | length;
  const Extent run = c.access.view.find_run(c.access.position, c.access.bytes);
  EXPECT_TRUE(run.empty() || (file.size() == 1 && run == summary.span));
  const std::uint64_t largest = bits & (~bits + 1);
  EXPECT_EQ(largest % summary.granule, 0u) << "not a granule";
}

void expect_view(const Case& c) {
  for (std::uint64_t i = 0; i < c.access.bytes; ++i)
    ASSERT_EQ(c.access.view.offset_of(c.access.position + i), c.file_bytes[i]);
  if (!c.file.layout.monotonic() || c.file.model.extent <= 0) return;
  const FileView& view = c.access.view;
  for (std::uint64_t offset = view.displacement; offset < c.end + 3; ++offset) {
    std::uint64_t before = 0;
    const auto wanted_bytes = c.access.position + c.access.bytes;
    for (std::uint64_t i = 0; i < wanted_bytes; ++i)
      before += view.displacement + static_cast<std::uint64_t>(c.file.model.at(i)) < offset ? 1 : 0;
    if (before < wanted_bytes) {
      EXPECT_EQ(view.position_of(offset), before) << offset;
    }
  }
}

void expect_all(Case& c, Random& random, bool overlapping_file) {
  const std::uint64_t granule =
      random.one_in(2) && !overlapping_file && c.access.bytes > 0 ? summarise(c.access).granule : 1;
  expect_summary(c);
  Walker walker(c.access);
  const std::vector<Extent> all = windows(c, granule, random);
  for (const Extent stretch : all) {
    const bool copies = random.one_in(2);
    expect_gather(c, walker, stretch, granule, copies,
                  random.one_in(2) ? Stores::past_caches : Stores::cached);
  }
  for (const Extent stretch : all) expect_next(c, walker, stretch, 1 + random.upto(4));
  expect_scatter(c, walker, windows(c, granule, random));
}

TEST(RandomAccesses, MoveTheirBytes) {
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + cases(1000) && !testing::Test::HasFailure();
       ++seed) {
    Random random(seed);
    Case c = random_case(random, false);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(c));
    if (c.access.bytes > 6000 || c.end > 40000) continue;
    if (c.access.bytes < 300) expect_view(c);
    expect_all(c, random, false);
  }
}

// Views that MPI does not allow, or only for reading: tiles that overlap or interleave, descending
// pieces.
TEST(RandomAccesses, MoveTheirBytesThroughOddViews) {
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + cases(1000) && !testing::Test::HasFailure();
       ++seed) {
    Random random(seed);
    Case c = random_case(random, true);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(c));
    if (c.access.bytes > 3000) continue;
    expect_all(c, random, true);
  }
}

}  // namespace
}  // namespace pario::pattern
