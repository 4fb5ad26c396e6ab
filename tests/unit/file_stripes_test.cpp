// Stripes on file systems without them, and errors that need no striped file system; the other
// tests are in tests/filesystems.
#include "core/file/stripes.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/file/beegfs.hpp"
#include "core/file/history.hpp"
#include "core/file/measured.hpp"
#include "core/file/new_file.hpp"
#include "directory.hpp"

namespace pario::file {
namespace {

class StripesElsewhere : public ::testing::Test {
 protected:
  static StripesRequest wanting(std::uint32_t targets) {
    StripesRequest request;
    request.parts.resize(1);
    request.parts[0].striping.targets = targets;
    return request;
  }
  const Directory directory_;
  const std::string& place_ = directory_.path();
};

TEST_F(StripesElsewhere, AreNotTold) {
  const auto told = stripes_of(place_);
  ASSERT_TRUE(told.ok());
  EXPECT_TRUE(told->directory);
  EXPECT_TRUE(told->striped.parts.empty());
  EXPECT_GT(told->block, 0U);
  EXPECT_EQ(target_count(place_), 0U);
}

TEST_F(StripesElsewhere, OfWhatIsNotThereAreAnError) {
  EXPECT_EQ(stripes_of(place_ + "/nothing").error().number, ENOENT);
}

TEST_F(StripesElsewhere, CannotBeSetAndNoFileIsMade) {
  const std::string path = place_ + "/new";
  const auto set = set_stripes(path, wanting(4));
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().number, ENOTSUP);
  EXPECT_EQ(set.error().path, path);
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  EXPECT_EQ(set_stripes(place_, wanting(4)).error().number, ENOTSUP);
  EXPECT_EQ(inherit_stripes(place_).error().number, ENOTSUP);
}

TEST_F(StripesElsewhere, HaveNoQuotasThatFail) {
  EXPECT_TRUE(quotas_of(place_ + "/nothing").empty());
}

TEST_F(StripesElsewhere, FilesOfAProgramAreLeftToIt) {
  hints::StripingHints hints = hints::default_striping_hints();
  hints.striping_factor = 4;
  const NewFile file(AT_FDCWD, (place_ + "/new").c_str(), 0644, hints);
  EXPECT_FALSE(file.has_created());
  EXPECT_NE(::access((place_ + "/new").c_str(), F_OK), 0);
  base::Text<256> reason;
  file.add_reason(reason);
  EXPECT_NE(reason.view().find("has no stripes that can be set"), reason.view().npos);
}

layout::Striping striping_for(std::uint64_t factor, std::uint64_t size, std::uint64_t writers) {
  hints::StripingHints hints = hints::default_striping_hints();
  hints.striping_factor = factor;
  hints.pario_expected_size = size;
  hints.pario_expected_writers = writers;
  return wanted_striping(hints, 1, 8, AT_FDCWD);
}

TEST(WantedStriping, FollowsFromTheExpectedSizeWhereNoNumberIsSet) {
  constexpr std::uint64_t kGiB = 1 << 30;
  EXPECT_EQ(striping_for(0, 0, 0), layout::Striping{});
  EXPECT_EQ(striping_for(3, 200 * kGiB, 64), (layout::Striping{0, 3, -1}))
      << "what is set is stronger";
  EXPECT_EQ(striping_for(0, kGiB / 2, 0).targets, 1U) << "one process uses it and it is small";
  EXPECT_EQ(striping_for(0, 20 * kGiB, 0).targets, 4U) << "a stream";
  EXPECT_EQ(striping_for(0, 200 * kGiB, 64), (layout::Striping{4 << 20, 8, -1}))
      << "as many as there are targets";
}

TEST(WantedStriping, IsForAllWhoOpenTheFileTogether) {
  hints::StripingHints hints = hints::default_striping_hints();
  hints.pario_expected_size = std::uint64_t{200} << 30;
  EXPECT_EQ(wanted_striping("/tmp/new", hints, 16).targets, 16U);
}

/// The choice for 16 MiB of eight processes in a new directory on eight targets.
layout::Striping striping_by(const std::string& sweeps) {
  const Directory place;
  const int directory = ::open(place.path().c_str(), O_PATH | O_DIRECTORY);
  const auto found = choose_striping(sweeps + place.path(), directory, {16 << 20, 8, 8, 8});
  ::close(directory);
  return found;
}

TEST(SweptStriping, DecidesBeforeThePolicyForSimilarFilesOfItsFileSystem) {
  const layout::Striping policy = {1 << 20, 1, -1}, swept = {2 << 20, 4, -1};
  EXPECT_EQ(striping_by("16777216:8:4:2097152="), swept);
  EXPECT_EQ(striping_by("67108864:32:4:2097152="), swept) << "four times as large, and as many";
  EXPECT_EQ(striping_by("67108865:8:4:2097152="), policy);
  EXPECT_EQ(striping_by("16777216:33:4:2097152="), policy);
  EXPECT_EQ(striping_by("16777216:1:4:2097152="), policy) << "measured alone";
  EXPECT_EQ(striping_by("16777216:8:64:2097152=").targets, 8U) << "no more than there are";
  EXPECT_EQ(striping_by("16777216:8:4:2097152=/proc,0:0:0:0="), policy) << "elsewhere";
  EXPECT_EQ(striping_by("16777216:8:4:2097152=/nowhere,16777216:8="), policy);
  EXPECT_EQ(striping_by("x:8:4:1=/,:,=,,16777216:8:0:2097152="), policy) << "malformed";
}

TEST(SweptStriping, IsThatOfTheMostSimilarFile) {
  EXPECT_EQ(striping_by("33554432:8:2:1048576=/tmp/..,16777216:9:4:2097152="),
            (layout::Striping{2 << 20, 4, -1}));
}

TEST(HistoryOfFiles, IsOfNamesThatDifferInNumbers) {
  EXPECT_TRUE(differ_in_numbers("step_0007.h5", "step_12.h5"));
  EXPECT_TRUE(differ_in_numbers("1", "22"));
  EXPECT_FALSE(differ_in_numbers("step_0007.h5", "step_.h5"));
  EXPECT_FALSE(differ_in_numbers("step_0007.h5", "step_0007.h5.old"));
  EXPECT_FALSE(differ_in_numbers("out.dat", "out.dat"));
}

TEST_F(StripesElsewhere, EarlierFilesTellWhatToExpect) {
  const int directory = ::open(place_.c_str(), O_RDONLY | O_DIRECTORY);
  for (const auto& [name, size] :
       {std::pair("a1.dat", 10), {"a20.dat", 30}, {"a3.dat", 20}, {"b1.dat", 90}, {"a.dat", 80}}) {
    const int file = ::openat(directory, name, O_WRONLY | O_CREAT, 0644);
    EXPECT_EQ(::ftruncate(file, size), 0);
    ::close(file);
  }
  EXPECT_EQ(largest_like(directory, "a4.dat"), 30U);
  EXPECT_EQ(largest_like(directory, "c4.dat"), 0U);
  EXPECT_EQ(largest_like(directory, "a.dat"), 0U);
  for (const char* name : {"a1.dat", "a20.dat", "a3.dat", "b1.dat", "a.dat"})
    EXPECT_EQ(::unlinkat(directory, name, 0), 0);
  ::close(directory);
}

std::string hex(const void* data, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<const unsigned char*>(data)[i];
    out += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

TEST(Beegfs, IsAskedAsItsPublicHeaderSays) {
  constexpr std::size_t kBytes = 20;  // and padding
  EXPECT_EQ(beegfs::kGetStripes, 0x800C6619U);
  EXPECT_EQ(beegfs::kMakeFile, 0x4018661BU);
  const beegfs::NewFile file = beegfs::new_file(nullptr, 0640, {1 << 20, 4, -1});
  EXPECT_EQ(sizeof file, 24U);
  EXPECT_EQ(hex(&file, kBytes),
            "0000000000000000"
            "a0010000"
            "04000000"
            "00001000");
  const beegfs::NewFile all = beegfs::new_file(nullptr, 0666, {0, layout::kAllTargets, -1});
  EXPECT_EQ(hex(&all, kBytes),
            "0000000000000000"
            "b6010000"
            "ffffffff"
            "00000000");
}

TEST(Beegfs, HasChunksOfPowersOfTwo) {
  EXPECT_EQ(beegfs::new_file("", 0, {1000, 0, -1}).chunk, 64U << 10);
  EXPECT_EQ(beegfs::new_file("", 0, {3 << 20, 0, -1}).chunk, 4U << 20);
  EXPECT_EQ(beegfs::new_file("", 0, {std::uint64_t{1} << 40, 0, -1}).chunk, 1U << 31);
}

TEST(Beegfs, ElsewhereSaysSo) {
  const int directory = ::open("/tmp", O_RDONLY | O_DIRECTORY);
  EXPECT_LT(beegfs::make(directory, beegfs::new_file("pario-no-such-file", 0600, {})), 0);
  EXPECT_EQ(beegfs::striping_of(directory).unit, 0U);
  ::close(directory);
}

class LustreMounts : public ::testing::Test {
 protected:
  void add(const std::string& mount, const char* on, const char* write, const char* read) {
    const std::string place = directory_ / mount;
    ASSERT_TRUE(std::filesystem::create_directory(place));
    std::ofstream(place + "/hybrid_io") << on << "\n";
    std::ofstream(place + "/hybrid_io_write_threshold_bytes") << write << "\n";
    std::ofstream(place + "/hybrid_io_read_threshold_bytes") << read << "\n";
  }
  const Directory directory_;
};

TEST_F(LustreMounts, SayFromWhichSizeCallsPassThePageCacheBy) {
  add("scratch-ffff9c", "1", "2097152", "8388608");
  EXPECT_EQ(direct_sizes_of_lustre(directory_.path()), (DirectSizes{2 << 20, 8 << 20}));
}

TEST_F(LustreMounts, CountIfTheyUseIt) {
  add("scratch-ffff9c", "1", "2097152", "4194304");
  add("home-ffff9d", "0", "33554432", "33554432");
  add("work-ffff9e", "1", "4194304", "2097152");
  EXPECT_EQ(direct_sizes_of_lustre(directory_.path()), (DirectSizes{4 << 20, 4 << 20}));
}

TEST_F(LustreMounts, OfOlderVersionsSayNothing) {
  ASSERT_TRUE(std::filesystem::create_directory(directory_ / "scratch-ffff9c"));
  EXPECT_EQ(direct_sizes_of_lustre(directory_.path()), DirectSizes{});
  EXPECT_EQ(direct_sizes_of_lustre(directory_ / "missing"), DirectSizes{});
}

}  // namespace
}  // namespace pario::file
