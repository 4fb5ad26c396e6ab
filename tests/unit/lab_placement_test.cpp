// The target of each byte of a file.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "instruments/lab/placement.hpp"

namespace pario::lab {
namespace {

constexpr std::uint64_t KiB = 1 << 10, MiB = 1 << 20;
constexpr std::uint32_t kTargets = 8;

std::vector<std::byte> bytes(std::string_view text) {
  const auto raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}

layout::StripedPart part(layout::Striping striping, base::Extent range = {0, layout::kToTheEnd}) {
  layout::StripedPart out;
  out.striping = striping, out.range = range;
  return out;
}

std::optional<Placement> lustre(const std::vector<layout::StripedPart>& parts,
                                std::uint32_t next = 5) {
  return Placement::decide(Personality::lustre, layout::lustre_attribute(parts), kTargets, 1,
                           [&](auto) { return next; });
}

std::optional<Placement> ceph(std::string_view text, std::uint32_t next = 0) {
  return Placement::decide(Personality::ceph, bytes(text), kTargets, 1, [&](auto) { return next; });
}

std::vector<std::uint32_t> targets_of(const std::optional<Placement>& placement) {
  std::vector<std::uint32_t> out;
  for (const auto& one : placement->objects(1)) out.push_back(one.target);
  return out;
}

using List = std::vector<std::uint32_t>;

TEST(Placement, OfLustreAlternatesFromTheFirstTarget) {
  EXPECT_EQ(targets_of(lustre({part({MiB, 4, -1})})), (List{5, 6, 7, 0}));
  EXPECT_EQ(targets_of(lustre({part({MiB, 2, 3})})), (List{3, 4}));
  EXPECT_EQ(targets_of(lustre({part({MiB, layout::kAllTargets, 0})})),
            (List{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(targets_of(lustre({part({MiB, 50, 0})})).size(), kTargets);
}

TEST(Placement, OfLustreMayBeAList) {
  layout::StripedPart listed = part({MiB, 0, -1});
  listed.targets = {6, 0, 2};
  EXPECT_EQ(targets_of(lustre({listed})), listed.targets);
  listed.targets = {8};
  EXPECT_FALSE(lustre({listed}));
}

TEST(Placement, OverstripedHasSeveralObjectsOnATarget) {
  layout::StripedPart over = part({MiB, 10, 0});
  over.overstriped = true;
  EXPECT_EQ(targets_of(lustre({over})), (List{0, 1, 2, 3, 4, 5, 6, 7, 0, 1}));
}

TEST(Placement, CutsAnExtentAtStripes) {
  const auto placement = lustre({part({64 * KiB, 2, 3})});
  const auto pieces = placement->pieces({60 * KiB, 130 * KiB});
  const std::vector<ObjectPart> wanted = {{{0, 0}, 3, 60 * KiB, {60 * KiB, 64 * KiB}},
                                          {{0, 1}, 4, 0, {64 * KiB, 128 * KiB}},
                                          {{0, 0}, 3, 64 * KiB, {128 * KiB, 130 * KiB}}};
  EXPECT_EQ(pieces, wanted);
}

TEST(Placement, CompositeFilesHaveObjectsOfEachPart) {
  const auto placement =
      lustre({part({MiB, 1, 0}, {0, 4 * MiB}), part({MiB, 4, 4}, {4 * MiB, layout::kToTheEnd})});
  EXPECT_EQ(placement->piece_at(4 * MiB - 1),
            (ObjectPart{{0, 0}, 0, 4 * MiB - 1, {4 * MiB - 1, 4 * MiB}}));
  EXPECT_EQ(placement->piece_at(5 * MiB), (ObjectPart{{1, 1}, 5, MiB, {5 * MiB, 6 * MiB}}));
}

TEST(Placement, OfCephMakesObjectsOfOneSizeEach) {
  const auto placement = ceph("stripe_unit=65536 stripe_count=2 object_size=131072", 7);
  EXPECT_EQ(placement->piece_at(64 * KiB).object, (ObjectName{0, 1}));
  EXPECT_EQ(placement->piece_at(128 * KiB),
            (ObjectPart{{0, 0}, 7, 64 * KiB, {128 * KiB, 192 * KiB}}));
  EXPECT_EQ(placement->piece_at(256 * KiB), (ObjectPart{{0, 2}, 1, 0, {256 * KiB, 320 * KiB}}));
  EXPECT_EQ(placement->objects(300 * KiB).size(), 4U);
}

TEST(Placement, RefusesInvalidAttributesLikeServers) {
  EXPECT_FALSE(ceph("stripe_unit=65537 stripe_count=2 object_size=131072"));
  EXPECT_FALSE(ceph("stripe_unit=65536 stripe_count=0 object_size=131072"));
  EXPECT_FALSE(ceph("stripe_unit=65536 stripe_count=2 object_size=100000"));
  EXPECT_FALSE(ceph("stripe_unit=65536 stripe_count=2 object_size=131072 pool=nothing"));
  EXPECT_FALSE(
      Placement::decide(Personality::lustre, bytes("lustre"), kTargets, 1, [](auto) { return 0; }));
  EXPECT_FALSE(Placement::decide(Personality::lustre,
                                 bytes("stripe_unit=65536 stripe_count=2 object_size=131072"),
                                 kTargets, 1, [](auto) { return 0; }));
}

TEST(Placement, IsKeptInARecord) {
  for (const auto& placement : {lustre({part({MiB, 3, 2})}),
                                ceph("stripe_unit=65536 stripe_count=3 object_size=131072", 4)}) {
    const auto again = Placement::read(placement->record());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->attribute(), placement->attribute());
    EXPECT_EQ(again->pieces({0, MiB}), placement->pieces({0, MiB}));
    EXPECT_EQ(again->file_name({1, 2}), "0000000000000001.1.2");
  }
  EXPECT_FALSE(Placement::read({}));
}

/// The objects of a file, cut or not, have the bytes of its pieces, for any extent.
void agrees(const Placement& placement, std::uint64_t size, std::uint64_t cut) {
  std::map<ObjectName, std::uint64_t> ends;
  std::uint64_t at = 0;
  for (const ObjectPart& piece : placement.pieces({0, size})) {
    EXPECT_EQ(piece.range.begin, at);
    at = piece.range.end;
    const std::uint64_t kept = base::intersection(piece.range, {0, cut}).length();
    if (kept > 0) ends[piece.object] = piece.inside + kept;
  }
  EXPECT_EQ(at, size);
  const auto objects = placement.objects(size, cut);
  for (const auto& object : objects)
    EXPECT_EQ(object.size, ends[object.name]) << size << " " << cut;
  for (const auto& [name, end] : ends)
    EXPECT_TRUE(std::ranges::any_of(objects, [&](const auto& one) { return one.name == name; }));
}

TEST(Placement, ObjectsHaveTheBytesOfThePieces) {
  std::mt19937_64 random(7);
  const auto any = [&](std::uint64_t most) { return random() % (most + 1); };
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t size = any(3 * MiB), cut = any(size);
    agrees(*lustre({part({64 * KiB * (1 + any(3)), static_cast<std::uint32_t>(1 + any(7)), -1})}),
           size, cut);
    agrees(*ceph("stripe_unit=65536 stripe_count=3 object_size=196608"), size, cut);
  }
}

}  // namespace
}  // namespace pario::lab
