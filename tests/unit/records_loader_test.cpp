// Loading batches: every record once and in order for any number of threads; unreadable records are
// named.
#include "data/records/loader.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "records_support.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kPatience = 10'000'000'000;

/// Makes a file of `count` records of `size` bytes; the first eight bytes are the record's number.
std::shared_ptr<const Dataset> make_numbered(const std::string& path, std::uint64_t count,
                                             std::uint64_t size) {
  std::string content(count * size, 'x');
  for (std::uint64_t i = 0; i < count; ++i) std::memcpy(content.data() + i * size, &i, sizeof i);
  std::ofstream(path, std::ios::binary) << content;
  auto image = make_index(
      {.path = path, .kind = Kind::fixed, .record_size = size, .lengths = {}, .threads = 1});
  EXPECT_TRUE(image.ok());
  auto dataset = Dataset::open(path, std::move(*Index::read(std::move(*image), path)));
  EXPECT_TRUE(dataset.ok());
  return std::make_shared<const Dataset>(std::move(*dataset));
}

struct Loaded {
  std::vector<std::uint64_t> numbers, contents;
  std::vector<std::size_t> batches;
  std::vector<std::uint64_t> ends;
  std::uint64_t failures = 0;
};

/// Loads all batches, or gives and loads these, as many at a time as the loader wants.
Loaded load(const LoadRequest& request, std::vector<GivenBatch> given = {}) {
  Loaded out;
  auto loader = Loader::start(request);
  EXPECT_TRUE(loader.ok());
  auto next = given.begin();
  const auto give = [&] {
    while (request.given && (*loader)->wants_batch())
      if (next == given.end())
        (*loader)->end_giving();
      else
        (*loader)->give(std::move(*next++));
  };
  for (Batch batch{}; give(), *(*loader)->next(batch, kPatience) == Loader::Outcome::batch;) {
    out.ends.push_back(batch.end);
    out.batches.push_back(batch.last - batch.first);
    for (std::size_t i = batch.first; i < batch.last; ++i) {
      out.numbers.push_back(batch.reading->numbers()[i]);
      std::uint64_t content = ~std::uint64_t{0};
      const base::Extent where = batch.reading->data()[i];
      if (!where.empty())
        std::memcpy(&content, batch.reading->memory()->data() + where.begin, sizeof content);
      out.contents.push_back(content);
    }
    if (batch.first == 0) out.failures += batch.reading->failures().size();
  }
  return out;
}

std::vector<std::uint64_t> list_order(const OrderRequest& request) {
  const Order order(request);
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < request.count; ++i) out.push_back(order.at(i));
  return out;
}

using RecordsLoader = Records;

/// A pipe would block a thread until another process writes.
TEST_F(RecordsLoader, APipeInPlaceOfAFileIsRefused) {
  const std::string pipe = file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const Caching caching : {Caching::page_cache, Caching::direct}) {
    const auto opened = Disk::open(pipe, O_RDONLY, caching);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().number, ESPIPE);
    EXPECT_EQ(opened.error().path, pipe);
  }
}

TEST_F(RecordsLoader, GivesTheRecordsOfTheOrderWhateverTheThreadsAndTheMemory) {
  for (const std::uint64_t size : {24U, 5000U, 70'000U}) {
    const auto dataset = make_numbered(file("data"), 700, size);
    for (const Ordering ordering : {Ordering::as_they_lie, Ordering::shuffled, Ordering::blocks})
      for (const unsigned threads : {1U, 4U})
        for (const Caching caching : {Caching::page_cache, Caching::direct}) {
          const OrderRequest order{
              .ordering = ordering, .count = 700, .seed = 3, .block = 16, .group = 4};
          const Loaded loaded = load({.datasets = {dataset},
                                      .order = order,
                                      .schedule = {.count = 700, .batch = 32},
                                      .memory = threads == 1 ? 1U : 1U << 20,
                                      .most_threads = threads,
                                      .caching = caching});
          EXPECT_EQ(loaded.numbers, list_order(order));
          EXPECT_EQ(loaded.contents, loaded.numbers);
          EXPECT_EQ(loaded.batches.size(), 22);
          EXPECT_EQ(loaded.batches.back(), 700 - 21 * 32);
        }
  }
}

TEST_F(RecordsLoader, GivesTheBatchesThatItWasGivenWhateverTheThreadsAndTheMemory) {
  const auto dataset = make_numbered(file("data"), 700, 5000);
  std::vector<GivenBatch> given;
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t batch = 0; batch < 90; ++batch) {
    given.push_back({{}, 1000 + batch});
    for (std::uint64_t i = 0; i < batch % 17; ++i)  // of different sizes, some empty
      numbers.push_back(given.back().numbers.emplace_back((batch * batch + 31 * i) % 700));
  }
  for (const unsigned threads : {1U, 4U})
    for (const std::uint64_t memory : {1U, 100'000U, 1U << 20}) {
      const Loaded loaded = load({.datasets = {dataset},
                                  .given = true,
                                  .order = {},
                                  .schedule = {},
                                  .memory = memory,
                                  .most_threads = threads},
                                 given);
      EXPECT_EQ(loaded.numbers, numbers);
      EXPECT_EQ(loaded.contents, numbers);
      ASSERT_EQ(loaded.batches.size(), 90U);
      for (std::size_t batch = 0; batch < 90; ++batch) {
        EXPECT_EQ(loaded.batches[batch], batch % 17);
        EXPECT_EQ(loaded.ends[batch], 1000 + batch);
      }
    }
}

TEST_F(RecordsLoader, SeveralDataSetsAreOneAfterTheOther) {
  const auto first = make_numbered(file("first"), 100, 100),
             second = make_numbered(file("second"), 50, 3000);
  const OrderRequest order{.ordering = Ordering::shuffled, .count = 150, .seed = 1};
  const Loaded loaded = load({.datasets = {first, second},
                              .order = order,
                              .schedule = {.count = 150, .batch = 7},
                              .memory = 1 << 20});
  EXPECT_EQ(loaded.numbers, list_order(order));
  for (std::size_t i = 0; i < loaded.numbers.size(); ++i)
    EXPECT_EQ(loaded.contents[i],
              loaded.numbers[i] < 100 ? loaded.numbers[i] : loaded.numbers[i] - 100);
}

TEST_F(RecordsLoader, RecordsThatAreGoneAreNamedAndTheOthersCome) {
  const auto dataset = make_numbered(file("data"), 64, 1000);
  std::filesystem::resize_file(file("data"), 60'500);
  const Loaded loaded = load({.datasets = {dataset},
                              .order = {.count = 64},
                              .schedule = {.count = 64, .batch = 64},
                              .memory = 1 << 20});
  EXPECT_EQ(loaded.failures, 4);
  for (std::uint64_t i = 0; i < 64; ++i)
    EXPECT_EQ(loaded.contents[i], i < 60 ? i : ~std::uint64_t{0});
}

TEST_F(RecordsLoader, ARankWithoutAShareOfTheLastStepHasABatchLess) {
  const auto dataset = make_numbered(file("data"), 9, 100);
  for (const std::uint64_t rank : {0U, 1U, 2U, 3U}) {
    const Loaded loaded = load({.datasets = {dataset},
                                .order = {.count = 9},
                                .schedule = {.count = 9, .batch = 2, .ranks = 4, .rank = rank},
                                .memory = 1 << 20});
    EXPECT_EQ(loaded.numbers, (rank == 3 ? std::vector<std::uint64_t>{6, 7, 8}
                                         : std::vector<std::uint64_t>{2 * rank, 2 * rank + 1}));
  }
}

TEST_F(RecordsLoader, BatchesOutliveTheLoader) {
  const auto dataset = make_numbered(file("data"), 10, 100);
  Batch batch{};
  {
    auto loader = Loader::start({.datasets = {dataset},
                                 .order = {.count = 10},
                                 .schedule = {.count = 10, .batch = 10},
                                 .memory = 1});
    ASSERT_EQ(*(*loader)->next(batch, kPatience), Loader::Outcome::batch);
  }
  EXPECT_EQ(batch.reading->memory()->data()[batch.reading->data()[9].begin], std::byte{9});
}

TEST(Pools, HaveNoMoreBuffersThanWereHeldAtATime) {
  const auto pool = std::make_shared<Pool>();
  for (std::uint64_t size = 1 << 20; size < 16 << 20; size *= 2)
    EXPECT_GE((*pool->take(size))->size(), size);
  EXPECT_EQ(pool->spare(), 1U);
  EXPECT_GE((*pool->take(1 << 20))->size(), 1U << 20);
  EXPECT_EQ(pool->spare(), 1U);
}

TEST_F(RecordsLoader, MayBeLeftAnywhere) {
  const auto dataset = make_numbered(file("data"), 5000, 1000);
  for (int taken = 0; taken < 20; ++taken) {
    auto loader = Loader::start({.datasets = {dataset},
                                 .order = {.ordering = Ordering::shuffled, .count = 5000},
                                 .schedule = {.count = 5000, .batch = 50},
                                 .memory = 1 << 20,
                                 .most_threads = 3});
    Batch batch{};
    for (int i = 0; i < taken; ++i)
      ASSERT_EQ(*(*loader)->next(batch, kPatience), Loader::Outcome::batch);
  }
}

}  // namespace
}  // namespace pario::records
