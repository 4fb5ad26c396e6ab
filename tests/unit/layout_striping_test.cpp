// The attributes of striped files, byte by byte.
#include <gtest/gtest.h>

#include <string>

#include "core/layout/layout.hpp"

namespace pario::layout {
namespace {

std::string hex(std::span<const std::byte> data) {
  std::string out;
  for (const std::byte byte : data) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[std::to_integer<unsigned>(byte) >> 4];
    out += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return out;
}

std::vector<std::byte> bytes(std::string_view digits) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  return out;
}

std::span<const std::byte> raw(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

const std::string kZeros16(32, '0');

std::vector<std::byte> plain_attribute(const Striping& striping) {
  const StripedPart part{.striping = striping};
  return lustre_attribute(std::span(&part, 1));
}

TEST(LustreAttribute, AsksForCountAndUnit) {
  EXPECT_EQ(hex(plain_attribute({1 << 20, 4, -1})),
            "d00bd10b01000000" + kZeros16 + "000010000400ffff");
}

TEST(LustreAttribute, AsksForAFirstTarget) {
  EXPECT_EQ(hex(plain_attribute({1 << 20, 4, 3})),
            "d00bd10b01000000" + kZeros16 + "0000100004000300");
}

TEST(LustreAttribute, AsksForAllTargetsAndLeavesTheUnitToTheDirectory) {
  EXPECT_EQ(hex(plain_attribute({0, ~0U, -1})), "d00bd10b01000000" + kZeros16 + "00000000ffffffff");
}

TEST(LustreAttribute, RoundsTheUnitUpToTheGranule) {
  EXPECT_EQ(read_striping(plain_attribute({100'000, 2, -1})).unit, 131'072U);
  EXPECT_EQ(read_striping(plain_attribute({std::uint64_t{1} << 40, 2, -1})).unit,
            (std::uint64_t{1} << 32) - kStripeGranule);
}

TEST(LustreAttribute, OfVersionThreeNamesThePool) {
  const StripedPart part{.striping = {1 << 20, 4, -1}, .pool = "fast"};
  EXPECT_EQ(hex(lustre_attribute(std::span(&part, 1))),
            "d00bd30b01000000" + kZeros16 + "000010000400ffff" + "66617374" + std::string(24, '0'));
}

StripedPart part(Striping striping) {
  StripedPart out;
  out.striping = striping;
  return out;
}

std::string attribute(std::vector<StripedPart> parts) {
  return hex(lustre_attribute(std::span<const StripedPart>(parts)));
}

TEST(LustreAttribute, Overstriped) {
  StripedPart wanted = part({1 << 20, 8, -1});
  wanted.overstriped = true;
  EXPECT_EQ(attribute({wanted}), "d00bd10b01020000" + kZeros16 + "000010000800ffff");
}

std::string object_on(const char* target) { return kZeros16 + "00000000" + target; }

TEST(LustreAttribute, WithAListOfTargets) {
  StripedPart wanted = part({1 << 20, 0, -1});
  wanted.targets = {0, 2, 4, 6};
  EXPECT_EQ(attribute({wanted}), "d00bd50b01000000" + kZeros16 + "0000100004000000" + kZeros16 +
                                     object_on("00000000") + object_on("02000000") +
                                     object_on("04000000") + object_on("06000000"));
}

TEST(LustreAttribute, OfSeveralPartsIsComposite) {
  StripedPart first = part({1 << 20, 1, -1}), rest = part({4 << 20, 8, -1});
  first.range = {0, 64 << 20};
  rest.range = {64 << 20, kToTheEnd};
  const std::string head = "d00bd60bc00000000000000000000200" + kZeros16;
  const std::string entries =
      "0000000000000000"
      "0000000000000000"
      "0000000400000000"
      "80000000"
      "20000000" +
      kZeros16 +
      "0000000000000000"
      "0000000400000000"
      "ffffffffffffffff"
      "a0000000"
      "20000000" +
      kZeros16;
  const std::string layouts = "d00bd10b01000000" + kZeros16 + "000010000100ffff" +
                              "d00bd10b01000000" + kZeros16 + "000040000800ffff";
  EXPECT_EQ(attribute({first, rest}), head + entries + layouts);
}

TEST(LustreAttribute, IsReadBackAsItWasWritten) {
  StripedPart plain = part({1 << 20, 4, -1}), pooled = plain, listed = part({2 << 20, 3, 5}),
              over = plain;
  pooled.pool = "fast";
  listed.targets = {5, 1, 9};
  over.overstriped = true;
  over.range = {0, 1 << 30};
  pooled.range = {1 << 30, kToTheEnd};
  for (std::vector<StripedPart> parts :
       {std::vector{plain}, std::vector{listed}, std::vector{over, pooled}}) {
    const std::vector<std::byte> written = lustre_attribute(parts);
    for (StripedPart& read : parts) read.waits = parts.size() > 1;
    EXPECT_EQ(read_striped_file(written), (StripedFile{parts, 0}));
  }
}

TEST(ReadStriping, OfLustreNamesTheTargetOfTheFirstObject) {
  const std::string object = kZeros16 + "00000000" + "07000000";
  EXPECT_EQ(
      read_striping(bytes("d00bd10b01000000" + kZeros16 + "0000100002000000" + object + object)),
      (Striping{1 << 20, 2, 7}));
  EXPECT_EQ(
      read_striping(bytes("d00bd30b01000000" + kZeros16 + "0000100002000000" + kZeros16 + object)),
      (Striping{1 << 20, 2, 7}));
}

TEST(ReadStriping, OfSeveralRangesIsThatOfTheLast) {
  const auto entry = [](const char* start, const char* place) {
    return "0100000000000000" + std::string(start) + "ffffffffffffffff" + place + "20000000" +
           std::string(32, '0');
  };
  const std::string head = "d00bd60bc00000000000000000000200" + kZeros16;
  const std::string layouts = "d00bd10b01000000" + kZeros16 + "000001000100ffff" +
                              "d00bd10b01000000" + kZeros16 + "000040000800ffff";
  const std::string whole = head + entry("0000000000000000", "80000000") +
                            entry("0000000400000000", "a0000000") + layouts;
  EXPECT_EQ(read_striping(bytes(whole)), (Striping{4 << 20, 8, -1}));
}

TEST(ReadStriping, OfCephIsText) {
  EXPECT_EQ(read_striping(raw("stripe_unit=65536 stripe_count=16 object_size=4194304 pool=data")),
            (Striping{65'536, 16, -1}));
}

TEST(ReadStripedFile, OfCephHasThePoolAndTheSizeOfObjects) {
  StripedPart wanted = part({65'536, 16, -1});
  wanted.pool = "data";
  EXPECT_EQ(
      read_striped_file(raw("stripe_unit=65536 stripe_count=16 object_size=4194304 pool=data")),
      (StripedFile{{wanted}, 4 << 20}));
}

TEST(ReadStripedFile, KnowsPartsThatLieWithTheMetadata) {
  const StripedFile file =
      read_striped_file(bytes("d00bd10b00010000" + kZeros16 + "000010000000ffff"));
  ASSERT_EQ(file.parts.size(), 1U);
  EXPECT_TRUE(file.parts[0].on_metadata_server);
}

TEST(ReadStripedFile, OfDamagedAttributesIsNothing) {
  EXPECT_EQ(read_striped_file({}), StripedFile{});
  EXPECT_EQ(read_striped_file(raw("user text")), StripedFile{});
  const std::string whole =
      "d00bd60bc00000000000000000000200" + kZeros16 + std::string(160 * 2, 'f');
  for (std::size_t digits = 8; digits < whole.size(); digits += 2)
    EXPECT_EQ(read_striped_file(bytes(whole.substr(0, digits))), StripedFile{});
}

TEST(ReadStriping, OfDamagedAttributesIsNothing) {
  EXPECT_EQ(read_striping({}), Striping{});
  EXPECT_EQ(read_striping(bytes("d00bd60bffffffffffffffffffffffff")), Striping{});
  EXPECT_EQ(read_striping(raw("stripe_unit")), Striping{});
  EXPECT_EQ(read_striping(bytes("d00b")), Striping{});
}

std::string ceph_attribute(const Striping& wanted, std::span<const std::byte> now,
                           const CephObjects& objects = {}) {
  base::Text<256> text;
  add_ceph_attribute(text, wanted, now, objects);
  return std::string(text.view());
}

TEST(CephAttribute, ChangesWhatIsWanted) {
  const auto now = raw("stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=data");
  EXPECT_EQ(ceph_attribute({1 << 20, 8, -1}, now),
            "stripe_unit=1048576 stripe_count=8 object_size=4194304");
  EXPECT_EQ(ceph_attribute({0, 8, -1}, now),
            "stripe_unit=4194304 stripe_count=8 object_size=4194304");
  EXPECT_EQ(ceph_attribute({1 << 20, 0, -1}, now),
            "stripe_unit=1048576 stripe_count=1 object_size=4194304");
}

TEST(CephAttribute, KeepsObjectsMultiplesOfTheUnit) {
  const auto now = raw("stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=data");
  EXPECT_EQ(ceph_attribute({3 << 20, 2, -1}, now),
            "stripe_unit=3145728 stripe_count=2 object_size=6291456");
  EXPECT_EQ(ceph_attribute({100'000, kAllTargets, -1}, now),
            "stripe_unit=131072 stripe_count=1 object_size=4194304");
}

TEST(CephAttribute, KeepsObjectsAsSmallAsServersWantThem) {
  const auto now = raw("stripe_unit=4194304 stripe_count=1 object_size=134217728 pool=data");
  EXPECT_EQ(ceph_attribute({std::uint64_t{1} << 32, 2, -1}, now),
            "stripe_unit=134217728 stripe_count=2 object_size=134217728");
  EXPECT_EQ(ceph_attribute({3 << 20, 2, -1}, now),
            "stripe_unit=3145728 stripe_count=2 object_size=132120576");
}

TEST(CephAttribute, TakesASizeOfObjectsAndAPool) {
  const auto now = raw("stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=data");
  EXPECT_EQ(ceph_attribute({1 << 20, 2, -1}, now, {16 << 20, "fast"}),
            "stripe_unit=1048576 stripe_count=2 object_size=16777216 pool=fast");
}

}  // namespace
}  // namespace pario::layout
