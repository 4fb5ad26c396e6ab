#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "core/layout/layout.hpp"

namespace pario::layout {
namespace {

TEST(Kind, IsFoundByTheMagicNumberOfStatfs) {
  EXPECT_EQ(kind_of_magic(0x0BD00BD0), Kind::lustre);
  EXPECT_EQ(kind_of_magic(0x47504653), Kind::gpfs);
  EXPECT_EQ(kind_of_magic(0x00C36400), Kind::ceph);
  EXPECT_EQ(kind_of_magic(0x19830326), Kind::beegfs);
  EXPECT_EQ(kind_of_magic(0x6969), Kind::nfs);
  EXPECT_EQ(kind_of_magic(0xAAD7AAEA), Kind::panfs);
  EXPECT_EQ(kind_of_magic(0x20030528), Kind::pvfs);
  EXPECT_EQ(kind_of_magic(0x65735546), Kind::fuse);
  EXPECT_EQ(kind_of_magic(0x01021994), Kind::tmpfs);
  for (const std::uint64_t disk : {0xEF53u, 0x58465342u, 0x9123683Eu, 0x794C7630u})
    EXPECT_EQ(kind_of_magic(disk), Kind::local);
  EXPECT_EQ(kind_of_magic(1), Kind::unknown);
}

TEST(Kind, MagicNumberMayBeSignExtended) {
  EXPECT_EQ(kind_of_magic(0xFFFFFFFFAAD7AAEA), Kind::panfs);
}

TEST(Kind, IsFoundByItsNameAndNameIsInItsTraits) {
  EXPECT_EQ(kind_of_name("lustre"), Kind::lustre);
  EXPECT_EQ(kind_of_name("Lustre"), Kind::unknown);
  EXPECT_STREQ(traits(Kind::tmpfs).name, "tmpfs");
  EXPECT_STREQ(traits(Kind::unknown).name, "unknown");
}

TEST(Kind, EveryNameOfAMountHasOneRow) {
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    std::istringstream names(traits(static_cast<Kind>(kind)).mounts);
    for (std::string name; names >> name;) {
      EXPECT_EQ(find_mount_traits(name), &traits(static_cast<Kind>(kind))) << name;
    }
  }
  EXPECT_EQ(find_mount_traits("ext4"), nullptr);
  EXPECT_EQ(find_mount_traits(""), nullptr);
  EXPECT_EQ(find_mount_traits("nfs nfs4"), nullptr);
}

TEST(Kind, RemoteMountsAreKnownAndFuseCountsAsRemoteUnlessItHasARow) {
  for (const char* remote : {"nfs", "nfs4", "lustre", "ceph", "fuse.ceph-fuse", "fuse.lustre",
                             "beegfs", "9p", "smb3", "fuse.sshfs", "fuse"})
    EXPECT_TRUE(is_network(remote)) << remote;
  for (const char* local : {"ext4", "xfs", "tmpfs", "fuseblk", "fuse.bindfs", "overlay", ""})
    EXPECT_FALSE(is_network(local)) << local;
}

TEST(Kind, LayoutAttributesBelongToStripedFileSystems) {
  EXPECT_STREQ(find_mount_traits("lustre")->layout_attribute, kLustreAttribute);
  EXPECT_STREQ(find_mount_traits("fuse.ceph-fuse")->layout_attribute, kCephAttribute);
  EXPECT_EQ(find_mount_traits("nfs")->layout_attribute, nullptr);
}

TEST(Traits, LocksThatHoldOnOneNodeOnlyAreKnown) {
  EXPECT_TRUE(traits(Kind::lustre).locks_across_nodes);
  EXPECT_FALSE(traits(Kind::nfs).locks_across_nodes);
  EXPECT_FALSE(traits(Kind::beegfs).locks_across_nodes);
  EXPECT_FALSE(traits(Kind::nfs).byte_coherent);
}

TEST(StripeLayout, TargetsTakeTurnsByUnit) {
  const StripeLayout stripes{Kind::lustre, 1 << 20, 4};
  EXPECT_EQ(stripes.target_of(0), 0u);
  EXPECT_EQ(stripes.target_of((1 << 20) - 1), 0u);
  EXPECT_EQ(stripes.target_of(5 << 20), 1u);
  EXPECT_EQ(StripeLayout{}.target_of(1 << 20), 0u);
}

}  // namespace
}  // namespace pario::layout
