// Objects of stores: opened once, read as one version, read ahead to an exact bound.
#include "core/file/objects.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "records_support.hpp"

namespace pario::file {
namespace {

/// Objects in memory, which counts the calls.
class Memory : public ObjectStore {
 public:
  base::Result<ObjectFacts> open(const std::string& url, std::uint64_t tail) override {
    const std::scoped_lock guard(mutex);
    ++opened;
    if (!objects.contains(url))
      return base::Error{.number = ENOENT, .operation = "open", .path = url};
    const std::string& content = objects[url];
    ObjectFacts facts{.size = content.size(), .modified = 7, .version = versions[url]};
    facts.tail.resize(std::min<std::uint64_t>(tail, content.size()));
    std::memcpy(facts.tail.data(), content.data() + content.size() - facts.tail.size(),
                facts.tail.size());
    return facts;
  }
  base::Status read(const std::string& url, const ObjectFacts& facts, std::uint64_t offset,
                    std::span<std::byte> out) override {
    const std::scoped_lock guard(mutex);
    if (facts.version != versions[url])
      return base::Error{.number = ESTALE, .operation = "read", .path = url};
    std::memcpy(out.data(), objects[url].data() + offset, out.size());
    requested += out.size();
    ++requests;
    return {};
  }
  base::Status write(const std::string& url, std::span<const std::byte> data) override {
    const std::scoped_lock guard(mutex);
    objects[url].assign(reinterpret_cast<const char*>(data.data()), data.size());
    versions[url] += '+';
    return {};
  }
  base::Status remove(const std::string& url) override {
    const std::scoped_lock guard(mutex);
    objects.erase(url);
    return {};
  }

  std::mutex mutex;
  std::map<std::string, std::string> objects, versions;
  std::atomic<std::uint64_t> requested = 0, requests = 0, opened = 0;
};

class Objects : public records::Records {
 protected:
  void SetUp() override {
    static const auto all = std::make_shared<Memory>();
    store = all;
    set_object_store(store);
    store->objects.clear();
    store->requested = store->requests = store->opened = 0;
  }
  void put(const std::string& url, std::uint64_t size) const {
    std::string content(size, ' ');
    for (std::uint64_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 31 >> 8);
    EXPECT_TRUE(write_object(url, std::as_bytes(std::span(content))).ok());
  }
  std::shared_ptr<Memory> store;
};

TEST_F(Objects, UrlsHaveASchemeAndTwoSlashes) {
  for (const char* url : {"s3://b/k", "http://h", "s3a+x.y-z://"}) EXPECT_TRUE(is_url(url)) << url;
  for (const char* path : {"/a/b", "s3:/b", "://b", "a b://c", "3://c", "./s3://b", ""})
    EXPECT_FALSE(is_url(path)) << path;
}

TEST_F(Objects, TheFileLayerReadsAndRemovesThem) {
  put("s3://b/k", 1 << 20);
  auto file = open(std::string_view("s3://b/k"));
  ASSERT_TRUE(file.ok());
  std::vector<std::byte> bytes(100);
  ASSERT_EQ((*file)->read(5000, bytes).value(), 100U);
  EXPECT_EQ(std::memcmp(bytes.data(), store->objects["s3://b/k"].data() + 5000, 100), 0);
  EXPECT_EQ((*file)->read((1 << 20) - 30, bytes).value(), 30U);  // in the tail
  EXPECT_EQ((*file)->read(1 << 21, bytes).value(), 0U);
  EXPECT_EQ(store->requests, 1U);
  EXPECT_EQ((*file)->write(0, bytes).error().number, EOPNOTSUPP);
  EXPECT_TRUE(remove_named("s3://b/k").ok());
  EXPECT_EQ(open(std::string_view("s3://b/k")).error().number, ENOENT);
}

TEST_F(Objects, KeptBlocksAreRequestedOnce) {
  put("s3://b/k", 5 << 20);
  auto file = open_object("s3://b/k");
  (*file)->keep_blocks();
  std::vector<std::byte> bytes((1 << 20) + 20);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ((*file)->read((1 << 20) - 10, bytes).value(), bytes.size());
    EXPECT_EQ(
        std::memcmp(bytes.data(), store->objects["s3://b/k"].data() + (1 << 20) - 10, bytes.size()),
        0);
    EXPECT_EQ(store->requests, 2U);  // the first two blocks together
  }
  put("s3://b/k", 5 << 20);
  EXPECT_TRUE((*file)->read(0, bytes).ok());
  for (int i = 0; i < 2; ++i) EXPECT_EQ((*file)->read(3 << 20, bytes).error().number, ESTALE);
}

TEST_F(Objects, AnotherVersionIsRefused) {
  put("s3://b/k", 1 << 20);
  auto file = open_object("s3://b/k");
  put("s3://b/k", 1 << 20);
  std::byte one[1];
  EXPECT_EQ((*file)->read(0, one).error().number, ESTALE);
  EXPECT_TRUE((*open_object("s3://b/k"))->read(0, one).ok());
}

TEST_F(Objects, AScopeOpensEachOnce) {
  put("s3://b/k", 10);
  {
    const KeptObjects kept;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(object_facts("s3://b/k")->size, 10U);
      EXPECT_EQ(object_facts("s3://b/none").error().number, ENOENT);
    }
    EXPECT_EQ(store->opened, 2U);
    put("s3://b/k", 11);
    EXPECT_EQ(object_facts("s3://b/k")->size, 11U);
  }
  EXPECT_TRUE(open_object("s3://b/k").ok());
  EXPECT_EQ(store->opened, 4U);
}

/// Bytes at either end of an object are kept with it.
TEST_F(Objects, AScopeKeepsTheHeadOfAnObject) {
  put("s3://b/k", 1 << 20);
  const std::string urls[] = {"s3://b/k", "s3://b/none"};
  std::vector<std::byte> bytes(100);
  {
    const KeptObjects kept;
    open_together(urls);
    EXPECT_EQ(store->opened, 2U);
    keep_head("s3://b/k", 5000);
    EXPECT_EQ(open_object("s3://b/none").error().number, ENOENT);
    const auto object = open_object("s3://b/k");
    EXPECT_EQ(store->requests, 1U);
    for (const std::uint64_t at : {0U, 4900U}) {
      ASSERT_EQ((*object)->read(at, bytes).value(), 100U);
      EXPECT_EQ(std::memcmp(bytes.data(), store->objects["s3://b/k"].data() + at, 100), 0);
    }
    EXPECT_EQ(store->requests, 1U);
    ASSERT_EQ((*object)->read(4901, bytes).value(), 100U);
    EXPECT_EQ(std::memcmp(bytes.data(), store->objects["s3://b/k"].data() + 4901, 100), 0);
    EXPECT_EQ(store->requests, 2U);
  }
  EXPECT_EQ(store->opened, 2U);
  open_together(urls);
  EXPECT_EQ(store->opened, 2U);
}

constexpr std::uint64_t kRecord = 10'240, kRecords = 1000;

std::shared_ptr<const records::Dataset> open_dataset(const std::string& url) {
  auto image = records::make_index({.path = url,
                                    .kind = records::Kind::fixed,
                                    .record_size = kRecord,
                                    .lengths = {},
                                    .threads = 1});
  EXPECT_TRUE(image.ok());
  auto dataset = records::Dataset::open(url, std::move(*records::Index::read(*image, url)));
  EXPECT_TRUE(dataset.ok());
  return std::make_shared<const records::Dataset>(std::move(*dataset));
}

std::unique_ptr<records::Loader> start_loader(
    std::shared_ptr<const records::Dataset> dataset, std::uint64_t memory,
    records::Ordering ordering = records::Ordering::as_they_lie) {
  records::LoadRequest request{
      .datasets = {}, .order = {}, .schedule = {}, .memory = memory, .most_threads = 8};
  request.datasets.push_back(std::move(dataset));
  request.order = {.ordering = ordering, .count = kRecords};
  request.schedule = {.count = kRecords, .batch = 1};
  auto loader = records::Loader::start(request);
  EXPECT_TRUE(loader.ok());
  return std::move(*loader);
}

/// Groups of 1, 4, 16 records and then of 39, three eighths of the memory: a third one of 39 would
/// exceed it.
TEST_F(Objects, ReadAheadHasAnExactBound) {
  put("s3://b/k", kRecord * kRecords);
  constexpr std::uint64_t kExpected = (21 + 2 * 39) * kRecord;
  static_assert(kExpected <= records::kMiB && kExpected + 39 * kRecord > records::kMiB);
  const auto dataset = open_dataset("s3://b/k");
  store->requested = 0;
  const auto loader = start_loader(dataset, records::kMiB);
  for (int i = 0; i < 24'000 && store->requested < kExpected; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a thread could read more by now
  EXPECT_EQ(store->requested, kExpected);
  std::uint64_t batches = 0;
  for (records::Batch batch{};
       *loader->next(batch, 10'000'000'000) == records::Loader::Outcome::batch;)
    ++batches;
  EXPECT_EQ(batches, kRecords);
}

/// An eighth of the records or more is known to be needed: they share requests over the gaps, which
/// are read, but not kept.
TEST_F(Objects, ShuffledRecordsShareRequestsInBoundedMemory) {
  put("s3://b/k", kRecord * kRecords);
  const auto dataset = open_dataset("s3://b/k");
  constexpr std::uint64_t kMemory = 8 * records::kMiB, kGroup = kMemory / 8 * 3 + kRecord;
  store->requested = store->requests = 0;
  const auto loader = start_loader(dataset, kMemory, records::Ordering::shuffled);
  std::map<std::uint64_t, std::string> found;
  for (records::Batch batch{};
       *loader->next(batch, 10'000'000'000) == records::Loader::Outcome::batch;) {
    EXPECT_LE(batch.reading->bytes(), kGroup + kGroup / 8);
    const base::Extent data = batch.reading->data()[batch.first];
    const auto* const begin = reinterpret_cast<const char*>(batch.reading->memory()->data());
    found[batch.reading->numbers()[batch.first]].assign(begin + data.begin, data.length());
  }
  EXPECT_EQ(found.size(), kRecords);
  for (const auto& [number, record] : found)
    EXPECT_EQ(record, store->objects["s3://b/k"].substr(number * kRecord, kRecord)) << number;
  EXPECT_LE(store->requests, kRecords / 4);
  EXPECT_LE(store->requested, 4 * kRecords * kRecord);
}

}  // namespace
}  // namespace pario::file
