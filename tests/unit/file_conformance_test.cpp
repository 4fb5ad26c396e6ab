// The behaviour that all registered members of the file interface share.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <numeric>
#include <thread>
#include <vector>

#include "core/file/file.hpp"
#include "directory.hpp"
#include "striping.hpp"

namespace pario::file {
namespace {

using Bytes = std::vector<std::byte>;

Bytes pattern(std::size_t length, unsigned seed = 1) {
  Bytes data(length);
  for (std::size_t i = 0; i < length; ++i)
    data[i] = static_cast<std::byte>(i * 7 + (i >> 8) + seed);
  return data;
}

/// A name of a new file of each scheme.
struct MemberCase {
  const char* scheme;
  std::string (*name)(const std::string& path);
};
void PrintTo(const MemberCase& member, std::ostream* out) { *out << member.scheme; }

const MemberCase kMembers[] = {
    {"local", [](const std::string& path) { return path; }},
    {"memory", [](const std::string& path) { return "memory:" + path; }},
    {"null", [](const std::string& path) { return "null:" + path; }},
    {"faulty", [](const std::string& path) { return "faulty:memory:" + path; }},
    {"throttled", [](const std::string& path) { return "throttled:1e12:memory:" + path; }},
    {"subfiled", [](const std::string& path) { return "subfiled:3:" + path; }},
};

TEST(Schemes, AllAreInTheConformanceSuite) {
  std::vector<std::string> tested;
  for (const MemberCase& member : kMembers) tested.emplace_back(member.scheme);
  EXPECT_EQ(scheme_names(), tested);
}

class Conformance : public testing::TestWithParam<MemberCase> {
 protected:
  void SetUp() override {
    auto opened = open(name, kNew);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    file = std::move(*opened);
  }

  void write(std::uint64_t offset, const Bytes& data) {
    const auto status = file->write(offset, data);
    ASSERT_TRUE(status.ok()) << status.error().text();
  }
  /// Reads the bytes of [offset, offset + length) up to the end of the file.
  Bytes read(std::uint64_t offset, std::size_t length) {
    Bytes data(length, std::byte{0xEE});
    const auto moved = file->read(offset, data);
    EXPECT_TRUE(moved.ok()) << moved.error().text();
    data.resize(moved.ok() ? moved.value() : 0);
    return data;
  }
  /// Returns the expected result of reading `data` back: zeros if the file keeps no content.
  Bytes expect_content(const Bytes& data) const {
    return file->capabilities().content ? data : Bytes(data.size());
  }
  std::uint64_t size() {
    const auto result = file->size();
    EXPECT_TRUE(result.ok());
    return result.ok() ? result.value() : ~std::uint64_t{0};
  }

  const OpenRequest kNew = {.flags = O_RDWR | O_CREAT | O_EXCL, .striping = make_striping(4096)};
  const Directory directory;
  const std::string name = GetParam().name(directory / "file");
  std::unique_ptr<File> file;
};

INSTANTIATE_TEST_SUITE_P(Members, Conformance, testing::ValuesIn(kMembers),
                         [](const auto& instance) { return instance.param.scheme; });

TEST_P(Conformance, IsEmptyWhenNew) {
  EXPECT_EQ(size(), 0U);
  EXPECT_TRUE(read(0, 10).empty());
}

TEST_P(Conformance, ReadsWhatWasWritten) {
  const Bytes data = pattern(300'000);
  write(12'345, data);
  EXPECT_EQ(size(), 312'345U);
  EXPECT_EQ(read(12'345, data.size()), expect_content(data));
}

TEST_P(Conformance, HolesReadAsZeros) {
  write(200'000, pattern(10));
  EXPECT_EQ(read(0, 200'000), Bytes(200'000));
}

TEST_P(Conformance, WritesReplaceJustTheirBytes) {
  Bytes data = pattern(1000, 1);
  write(0, data);
  const Bytes patch = pattern(100, 77);
  write(450, patch);
  std::ranges::copy(patch, data.begin() + 450);
  EXPECT_EQ(read(0, 1000), expect_content(data));
}

TEST_P(Conformance, ReadsAreShorterOnlyAtTheEnd) {
  const Bytes data = pattern(100'000);
  write(0, data);
  EXPECT_EQ(read(99'990, 1000), expect_content(Bytes(data.end() - 10, data.end())));
  EXPECT_TRUE(read(100'000, 10).empty());
  EXPECT_TRUE(read(std::uint64_t{1} << 41, 10).empty());
}

TEST_P(Conformance, EmptyTransfersDoNothing) {
  write(100, {});
  EXPECT_EQ(size(), 0U);
  EXPECT_TRUE(read(0, 0).empty());
  EXPECT_TRUE(file->write_vector(0, {}).ok());
}

TEST_P(Conformance, ReachesOffsetsBeyondTwoToTheForty) {
  const std::uint64_t far = (std::uint64_t{1} << 40) + 5;
  const Bytes data = pattern(5000);
  write(far, data);
  EXPECT_EQ(size(), far + 5000);
  EXPECT_EQ(read(far, 5000), expect_content(data));
}

TEST_P(Conformance, OffsetsThatNoFileHasAreErrors) {
  const Bytes data = pattern(10);
  Bytes room(10);
  EXPECT_EQ(file->write(~std::uint64_t{0} - 4, data).error().number, EFBIG);
  EXPECT_EQ(file->read(~std::uint64_t{0} - 4, room).error().number, EINVAL);
  EXPECT_EQ(file->write(INT64_MAX - 4, data).error().number, EFBIG);
}

TEST_P(Conformance, VectorsMayHaveAnyNumberOfPieces) {
  constexpr std::size_t kPieces = 3 * IOV_MAX + 7;
  Bytes data = pattern(kPieces * 9);
  std::vector<iovec> pieces;
  for (std::size_t i = 0; i < kPieces; ++i) pieces.push_back({&data[i * 9], 9});
  ASSERT_TRUE(file->write_vector(3, pieces).ok());
  EXPECT_EQ(read(3, data.size()), expect_content(data));

  Bytes back(data.size() + 100);
  pieces.clear();
  for (std::size_t at = 0; at < back.size(); at += 11)
    pieces.push_back({&back[at], std::min<std::size_t>(11, back.size() - at)});
  const auto moved = file->read_vector(3, pieces);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved.value(), data.size());
  back.resize(data.size());
  EXPECT_EQ(back, expect_content(data));
}

TEST_P(Conformance, VectorsMayHaveEmptyPieces) {
  Bytes data = pattern(20);
  iovec pieces[] = {{nullptr, 0}, {data.data(), 5}, {nullptr, 0}, {&data[5], 15}, {nullptr, 0}};
  ASSERT_TRUE(file->write_vector(0, pieces).ok());
  EXPECT_EQ(read(0, 20), expect_content(data));
}

TEST_P(Conformance, ResizeCutsAndGrows) {
  write(0, pattern(200'000));
  ASSERT_TRUE(file->resize(70'001).ok());
  EXPECT_EQ(size(), 70'001U);
  ASSERT_TRUE(file->resize(150'000).ok());
  EXPECT_EQ(size(), 150'000U);
  EXPECT_EQ(read(70'001, 200'000), Bytes(79'999));
  const Bytes whole = pattern(200'000);
  EXPECT_EQ(read(70'000, 1), expect_content({whole[70'000]}));
  ASSERT_TRUE(file->resize(0).ok());
  EXPECT_EQ(size(), 0U);
}

TEST_P(Conformance, PreallocateGrowsAndNeverShrinks) {
  write(0, pattern(1000));
  ASSERT_TRUE(file->preallocate(100'000).ok());
  EXPECT_EQ(size(), 100'000U);
  EXPECT_EQ(read(0, 1000), expect_content(pattern(1000)));
  EXPECT_EQ(read(1000, 99'000), Bytes(99'000));
  ASSERT_TRUE(file->preallocate(10).ok());
  ASSERT_TRUE(file->preallocate(0).ok());
  EXPECT_EQ(size(), 100'000U);
}

TEST_P(Conformance, SyncRefreshAndLocksSucceed) {
  write(0, pattern(1000));
  EXPECT_TRUE(file->sync().ok());
  EXPECT_TRUE(file->refresh().ok());
  EXPECT_TRUE(file->lock({0, 100}, true).ok());
  EXPECT_TRUE(file->lock({100, 200}, false).ok());
  EXPECT_TRUE(file->unlock({0, 200}).ok());
  EXPECT_TRUE(file->lock({0, 0}, true).ok());
  EXPECT_TRUE(file->lock({5, ~std::uint64_t{0}}, true).ok());
  EXPECT_TRUE(file->unlock({5, ~std::uint64_t{0}}).ok());
  EXPECT_EQ(read(0, 1000), expect_content(pattern(1000)));
}

TEST_P(Conformance, ThreadsMayWriteAndReadAtTheSameTime) {
  constexpr std::size_t kThreads = 4, kPart = 50'000;
  std::atomic<unsigned> failures = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      Bytes back(kPart);
      for (unsigned round = 0; round < 5; ++round) {
        const Bytes data = pattern(kPart, i + round);
        const bool good = file->write(i * kPart, data).ok() && file->read(i * kPart, back).ok() &&
                          back == expect_content(data);
        if (!good) ++failures;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0U);
  EXPECT_EQ(size(), kThreads * kPart);
}

TEST_P(Conformance, HasAPathAndALayout) {
  EXPECT_FALSE(file->path().empty());
  EXPECT_GT(file->layout().unit, 0U);
  EXPECT_GT(file->layout().targets, 0U);
}

TEST_P(Conformance, HasTheCapabilitiesThatItsOperationsNeed) {
  const Capabilities has = file->capabilities();
  EXPECT_TRUE(has.locks);
  EXPECT_TRUE(has.preallocation);
  EXPECT_TRUE(has.resize);
  EXPECT_EQ(has.content, std::string(GetParam().scheme) != "null");
}

TEST_P(Conformance, ANameOpensTheSameFileUntilItIsRemoved) {
  if (!file->capabilities().content) GTEST_SKIP() << "has no content";
  write(0, pattern(1000));
  ASSERT_TRUE(file->close().ok());
  EXPECT_EQ(open(name, kNew).error().number, EEXIST);
  auto again = open(name, {.flags = O_RDWR});
  ASSERT_TRUE(again.ok()) << again.error().text();
  Bytes data(1000);
  EXPECT_EQ((*again)->read(0, data).value(), 1000U);
  EXPECT_EQ(data, pattern(1000));
  ASSERT_TRUE(remove_named(name).ok());
  EXPECT_EQ(open(name, {.flags = O_RDWR}).error().number, ENOENT);
  EXPECT_EQ(remove_named(name).error().number, ENOENT);
}

TEST_P(Conformance, ClosesOnce) { EXPECT_TRUE(file->close().ok()); }

TEST(Schemes, APathWithAColonIsLocalWithoutARegisteredScheme) {
  const Directory directory;
  const auto file = open(directory / "a:b", {.flags = O_RDWR | O_CREAT});
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->path(), directory / "a:b");
}

TEST(Schemes, APathInARequestIsLocalWhateverItBeginsWith) {
  const Directory directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  const auto file = open({.path = "null:file", .flags = O_RDWR | O_CREAT});
  std::filesystem::current_path(before);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(std::filesystem::exists(directory / "null:file"));
}

TEST(Schemes, AWrongValueIsAnErrorThatSaysWhatIsExpected) {
  for (const char* name : {"throttled:x", "throttled:-1:null:x", "subfiled:path", "subfiled:0:x"})
    EXPECT_EQ(open(std::string_view(name)).error().number, EINVAL) << name;
}

TEST(Schemes, AnotherSchemeCanBeRegisteredOnce) {
  const Scheme empty = {"empty",
                        [](const OpenRequest& request) -> base::Result<std::unique_ptr<File>> {
                          return make_null("empty:" + request.path);
                        },
                        [](const std::string&) { return base::Status(); }};
  EXPECT_TRUE(register_scheme(empty));
  EXPECT_FALSE(register_scheme(empty));
  const auto file = open("empty:name");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->path(), "empty:name");
}

}  // namespace
}  // namespace pario::file
