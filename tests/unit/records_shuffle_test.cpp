// The shuffle: every plan gives the order of the definition; errors, and the files they leave.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <map>
#include <random>

#include "data/records/philox.hpp"
#include "records_support.hpp"

namespace pario::records {
namespace {

/// Shuffles the lines of `text` by the definition of the order; each gets a line end.
std::string shuffle_lines(const std::string& text, std::uint64_t seed, unsigned bits = 64) {
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::string>> order;
  const ShuffleKeys keys(seed, bits);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    order.emplace_back(keys.of(at), at, text.substr(at, end - at) + "\n");
    at = end + 1;
  }
  std::ranges::sort(order);
  std::string out;
  for (const auto& [key, at, line] : order) out += line;
  return out;
}

std::string random_lines(std::mt19937_64& random, int count, std::uint64_t longest) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += std::string(random() % (longest + 1), static_cast<char>('a' + i % 26)) + "\n";
  return out;
}

class Shuffle : public Records {
 protected:
  ShuffleRequest request(const std::string& input) const {
    return {.inputs = {input},
            .outputs = {file("out")},
            .seed = 7,
            .memory = 4096 * kMiB,
            .temporary = directory};
  }
  std::string run(const ShuffleRequest& request) const {
    const auto done = shuffle(request);
    if (!done.ok()) return done.error().text();
    std::string out;
    for (const std::string& output : request.outputs) out += bytes_of(output);
    return out;
  }
};

/// Makes a small plan of each kind, with small limits, so that all bytes are divided and reread.
ShufflePlan small_plan(Way way, unsigned threads, std::mt19937_64& random) {
  ShufflePlan plan{.way = way,
                   .buckets = static_cast<std::uint32_t>(1 + random() % 5),
                   .threads = threads,
                   .chunk = 1 + random() % 5000,
                   .buffer = 4096};
  plan.inline_limit = way == Way::gather ? 0 : random() % 2 == 0 ? 4096 - 64 : random() % 300;
  plan.bucket_limit = way == Way::buckets ? 32'768 : ~std::uint64_t{0};
  return plan;
}

TEST_F(Shuffle, TheOrderIsThatOfTheKeysByEveryPlanAndAnyThreads) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 30; ++round) {
    const std::string text = random_lines(random, static_cast<int>(random() % 500),
                                          round % 3 == 0   ? 3
                                          : round % 3 == 1 ? 300
                                                           : 9000);
    ShuffleRequest asked = request(make("in.txt", text));
    asked.seed = random();
    for (const Way way : {Way::memory, Way::gather, Way::buckets}) {
      asked.plan = small_plan(way, 1 + static_cast<unsigned>(round) % 8, random);
      ASSERT_EQ(run(asked), shuffle_lines(text, asked.seed))
          << round << " " << static_cast<int>(way);
    }
  }
}

TEST_F(Shuffle, RecordsWithEqualKeysAreInTheOrderOfTheInput) {
  std::mt19937_64 random(2);
  const std::string text = random_lines(random, 3000, 50);
  ShuffleRequest asked = request(make("in.txt", text));
  asked.key_bits = 4;
  for (const Way way : {Way::memory, Way::gather, Way::buckets}) {
    asked.plan = small_plan(way, 4, random);
    asked.plan->bucket_limit = ~std::uint64_t{0};
    EXPECT_EQ(run(asked), shuffle_lines(text, asked.seed, 4));
  }
}

TEST_F(Shuffle, MoreRecordsThanExpectedGoThroughBuckets) {
  std::mt19937_64 random(6);
  const std::string text = random_lines(random, 20'000, 10);
  ShuffleRequest asked = request(make("in.txt", text));
  for (const Way way : {Way::memory, Way::gather}) {
    asked.plan = small_plan(way, 2, random);
    asked.plan->heap_limit = 40'960;
    EXPECT_EQ(run(asked), shuffle_lines(text, 7));
  }
}

TEST_F(Shuffle, UnusualInputs) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("one"), std::string("a\nb"),
        std::string("\0\n\n\xff\n", 5), std::string(3 * kMiB, 'x'),
        std::string(kMiB, 'x') + "\nshort\n" + std::string(kMiB, 'y')}) {
    const ShuffleRequest asked = request(make("in.txt", text));
    EXPECT_EQ(run(asked), shuffle_lines(text, asked.seed));
  }
}

TEST_F(Shuffle, ALastLineWithoutAnEndGetsThatOfTheOthers) {
  const std::string out = run(request(make("in.txt", "a\r\nb\r\nc")));
  EXPECT_EQ(out.size(), 9U);
  EXPECT_NE(out.find("c\r\n"), std::string::npos);
}

TEST_F(Shuffle, SeveralInputsAreOne) {
  ShuffleRequest asked = request(make("1.txt", "a\nb"));
  asked.inputs.push_back(make("2.txt", ""));
  asked.inputs.push_back(make("3.txt", "c\nd\n"));
  EXPECT_EQ(run(asked), shuffle_lines("a\nb\nc\nd\n", 7));
}

TEST_F(Shuffle, LinesGoByAnIndexThatIsNotOutOfDate) {
  std::mt19937_64 random(8);
  const std::string text = random_lines(random, 2000, 300) + "the last one";
  ShuffleRequest asked = request(make("in.txt", text));
  asked.inputs.push_back(make("more.txt", "b\nc"));
  asked.plan = small_plan(Way::gather, 3, random);
  for (const std::string& path : asked.inputs) {
    ASSERT_FALSE(preview_shuffle(asked)->facts.indexed);
    ASSERT_TRUE(
        write_whole(index_path(path), *make_index({.path = path, .kind = Kind::lines})).ok());
  }
  EXPECT_TRUE(preview_shuffle(asked)->facts.indexed);
  for (const Way way : {Way::memory, Way::gather, Way::buckets}) {
    asked.plan = small_plan(way, 3, random);
    EXPECT_EQ(run(asked), shuffle_lines(text + "\nb\nc", 7));
  }
  make("more.txt", "b\nc\nd");
  EXPECT_FALSE(preview_shuffle(asked)->facts.indexed);
  EXPECT_EQ(run(asked), shuffle_lines(text + "\nb\nc\nd", 7));
}

TEST_F(Shuffle, ShardsAreTheOutputInEqualParts) {
  std::mt19937_64 random(3);
  const std::string text = random_lines(random, 1000, 60);
  ShuffleRequest asked = request(make("in.txt", text));
  for (const std::size_t shards : {2U, 7U, 64U}) {
    asked.outputs.clear();
    for (std::size_t i = 0; i < shards; ++i)
      asked.outputs.push_back(file("shard" + std::to_string(i)));
    asked.plan = small_plan(Way::buckets, 4, random);
    EXPECT_EQ(run(asked), shuffle_lines(text, 7));
    for (const std::string& shard : asked.outputs) {
      const auto lines = static_cast<std::size_t>(std::ranges::count(bytes_of(shard), '\n'));
      EXPECT_TRUE(lines == 1000 / shards || lines == 1000 / shards + 1) << lines;
    }
  }
}

TEST_F(Shuffle, MoreShardsThanRecordsLeaveEmptyOnes) {
  ShuffleRequest asked = request(make("in.txt", "a\nb\n"));
  asked.outputs = {file("0"), file("1"), file("2"), file("3"), file("4")};
  EXPECT_EQ(run(asked), shuffle_lines("a\nb\n", 7));
  EXPECT_EQ(entries(), (std::vector<std::string>{"0", "1", "2", "3", "4", "in.txt"}));
}

TEST_F(Shuffle, FixedRecordsGoByTheirIndex) {
  std::string bytes, sorted;
  for (int i = 0; i < 5000; ++i) bytes += std::to_string(10'000 + i);
  const std::string path = make("fixed", bytes);
  ASSERT_TRUE(write_whole(index_path(path),
                          *make_index({.path = path, .kind = Kind::fixed, .record_size = 5}))
                  .ok());
  ShuffleRequest asked = request(path);
  asked.kind = Kind::fixed;
  std::mt19937_64 random(4);
  const std::string automatic = run(asked);
  ASSERT_EQ(automatic.size(), bytes.size());
  std::vector<std::string> records;
  for (std::size_t at = 0; at < automatic.size(); at += 5)
    records.push_back(automatic.substr(at, 5));
  std::ranges::sort(records);
  for (const std::string& record : records) sorted += record;
  EXPECT_EQ(sorted, bytes);
  for (const Way way : {Way::memory, Way::gather, Way::buckets}) {
    asked.plan = small_plan(way, 3, random);
    EXPECT_EQ(run(asked), automatic);
  }
}

TEST_F(Shuffle, AllPermutationsOfFiveRecordsAreEquallyFrequent) {
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 0; seed < 60'000; ++seed) {
    std::array<std::pair<std::uint64_t, char>, 5> order;
    const ShuffleKeys keys(seed);
    for (std::size_t i = 0; i < 5; ++i) order[i] = {keys.of(2 * i), static_cast<char>('a' + i)};
    std::ranges::sort(order);
    std::string text;
    for (const auto& [key, letter] : order) text += letter;
    ++seen[text];
  }
  ASSERT_EQ(seen.size(), 120U);
  double chi_square = 0;
  for (const auto& [text, count] : seen) chi_square += (count - 500.0) * (count - 500.0) / 500;
  EXPECT_LT(chi_square,
            181.9);  // of 119 degrees of freedom, exceeded once in 5,000; the seeds are fixed
  EXPECT_GT(chi_square, 69.5);
}

TEST_F(Shuffle, PlacesBeforeAndAfterHaveNothingToDoWithEachOther) {
  constexpr std::size_t kRecords = 20'000;
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  for (std::size_t i = 0; i < kRecords; ++i) order.emplace_back(ShuffleKeys(11).of(100 * i), i);
  std::ranges::sort(order);
  double with_place = 0, with_next = 0;
  int neighbours = 0;
  const auto centred = [](std::size_t place) {
    return (static_cast<double>(place) - kRecords / 2.0) / kRecords * std::sqrt(12);
  };
  for (std::size_t i = 0; i + 1 < kRecords; ++i) {
    const std::size_t here = order[i].second, next = order[i + 1].second;
    with_place += centred(i) * centred(here);
    with_next += centred(here) * centred(next);
    neighbours += here + 1 == next || next + 1 == here;
  }
  const double four_sigma = 4 / std::sqrt(static_cast<double>(kRecords));
  EXPECT_LT(std::abs(with_place / kRecords), four_sigma);
  EXPECT_LT(std::abs(with_next / kRecords), four_sigma);
  EXPECT_LT(neighbours, 12) << "two are expected";
}

TEST_F(Shuffle, NothingIsLeftWhenItFails) {
  ShuffleRequest asked = request(make("in.txt", std::string(kMiB, '\n')));
  asked.outputs = {directory + "/none/out"};
  EXPECT_NE(run(asked).find("ENOENT"), std::string::npos);
  asked.outputs = {file("in.txt")};
  EXPECT_NE(run(asked).find("it is an input, too"), std::string::npos);
  EXPECT_EQ(entries(), std::vector<std::string>{"in.txt"});
}

TEST_F(Shuffle, AFullDiskIsAnErrorThatNamesItsPlace) {
  std::mt19937_64 random(5);
  const ShuffleRequest plain = request(make("in.txt", std::string(4 * kMiB, '\n')));
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit little{kMiB, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  ShuffleRequest asked = plain;
  asked.plan = small_plan(Way::buckets, 2, random);
  const std::string told = run(asked);
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, before);
  EXPECT_NE(told.find("EFBIG"), std::string::npos) << told;
  EXPECT_EQ(entries(), std::vector<std::string>{"in.txt"});
}

TEST_F(Shuffle, WhoStopsItLeavesNothing) {
  const auto done = shuffle(request(make("in.txt", std::string(kMiB, '\n'))),
                            [](std::uint64_t, std::uint64_t) { return false; });
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().number, ECANCELED);
  EXPECT_EQ(entries(), std::vector<std::string>{"in.txt"});
}

TEST_F(Shuffle, AnOutputThatWasThereIsReplacedWhole) {
  make("out", "old");
  EXPECT_EQ(run(request(make("in.txt", "a\n"))), "a\n");
}

TEST(ShufflePlans, MemoryWhereItFits) {
  const auto plan = plan_shuffle({.bytes = 100 * kMiB, .records = kMiB, .memory = 256 * kMiB});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->way, Way::memory);
}

TEST(ShufflePlans, BucketsForSmallRecordsAndGatheringForLargeOnes) {
  const std::uint64_t bytes = 4096 * kMiB, memory = 480 * kMiB;
  const ShuffleFacts small{.bytes = bytes, .records = bytes / 100, .memory = memory},
      large{.bytes = bytes, .records = bytes / 100'000, .memory = memory};
  EXPECT_EQ(plan_shuffle(small)->way, Way::buckets);
  EXPECT_EQ(plan_shuffle(large)->way, Way::gather);
  EXPECT_LT(plan_shuffle(small)->traffic, 4.1);
}

TEST(ShufflePlans, TheBreakEvenLengthIsWhatTheDeviceReadsInTheTimeOfARequest) {
  EXPECT_DOUBLE_EQ(break_even_length({.indexed = true, .bandwidth = 1e9, .requests = 20e3}),
                   25'000);
  EXPECT_DOUBLE_EQ(break_even_length({.indexed = false, .bandwidth = 1e9, .requests = 20e3}),
                   50'000);
  const ShuffleFacts disk{.bytes = 4096 * kMiB,
                          .records = 4096 * 10,
                          .memory = 480 * kMiB,
                          .bandwidth = 150e6,
                          .requests = 120};
  EXPECT_EQ(plan_shuffle(disk)->way, Way::buckets) << "seeks cost more than streaming twice";
}

TEST(ShufflePlans, LittleMemoryMeansFewThreadsOrNothing) {
  const ShuffleFacts facts{.bytes = 4096 * kMiB, .records = 40 * kMiB, .memory = 12 * kMiB};
  const auto plan = plan_shuffle(facts);
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  EXPECT_LT(plan->threads, 4U);
  EXPECT_GT(plan->traffic, 5) << "buckets are divided again";
  const auto none = plan_shuffle({.bytes = 4096 * kMiB, .records = 40 * kMiB, .memory = kMiB});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().text().find("of memory are needed"), std::string::npos);
}

TEST(ShufflePlans, ACompressedTemporaryFileTakesAPieceOfMemoryOfEachThread) {
  ShuffleFacts facts{.bytes = 4096 * kMiB, .records = 40 * kMiB, .memory = 256 * kMiB};
  const auto plain = plan_shuffle(facts, Way::buckets);
  facts.compress = true;
  const auto compressed = plan_shuffle(facts, Way::buckets);
  ASSERT_TRUE(plain.ok() && compressed.ok());
  EXPECT_EQ(compressed->threads, plain->threads);
  EXPECT_GE(plain->bucket_limit - compressed->bucket_limit, plain->buffer * 9 / 8);
  EXPECT_LE(plain->bucket_limit - compressed->bucket_limit, 5U << 16);
}

TEST(ShufflePlans, VeryShortAndVeryLongRecordsAreTheSameOnEveryDevice) {
  EXPECT_FALSE(device_matters({.bytes = 1000, .records = 10}));
  EXPECT_TRUE(device_matters({.bytes = 1'000'000, .records = 10}));
  EXPECT_FALSE(device_matters({.bytes = 100'000'000, .records = 10}));
}

TEST(ShufflePlans, SayWhatTheyDoAndWhy) {
  const ShuffleFacts lines{.bytes = 4'000'000'000, .records = 40'000'000, .memory = 500'000'000};
  EXPECT_EQ(text_of(*plan_shuffle(lines), lines),
            "way: buckets, because records of about 100 B are short for every device\n"
            "input: 4 GB, 40000000 records, memory 500 MB\n"
            "reads and writes: 16 GB, past the page cache\n"
            "temporary file: 4.32 GB\n"
            "8 threads, 89 buckets of about 44.9 MB\n");
  const ShuffleFacts longer{.bytes = 4'000'000'000, .records = 400'000, .memory = 500'000'000};
  EXPECT_EQ(plan_shuffle(longer)->reason,
            "records of about 10 kB, less than 25 kB: reading each where it lies would cost about "
            "28 s, buckets cost 16 s");
}

}  // namespace
}  // namespace pario::records
