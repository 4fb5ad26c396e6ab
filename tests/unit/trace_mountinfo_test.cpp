#include "core/trace/mountinfo.hpp"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

namespace pario::trace {
namespace {

constexpr std::string_view kMounts =
    "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "41 22 0:39 / /scratch rw,nosuid - lustre 10.0.0.1@tcp:/fs rw,flock\n"
    "42 22 0:40 /export /my\\040data rw shared:2 master:3 - nfs4 server:/export rw\n"
    "43 41 0:39 / /scratch2 rw - lustre 10.0.0.1@tcp:/fs rw\n";

TEST(Mountinfo, IsSearchedById) {
  const auto mount = find_mount(kMounts, 42, 0);
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->mount, "/my\\040data");
  EXPECT_EQ(mount->type, "nfs4");
  EXPECT_EQ(mount->source, "server:/export");
}

TEST(Mountinfo, IsSearchedByDevice) {
  EXPECT_EQ(find_mount(kMounts, 0, makedev(0, 39))->mount, "/scratch2")
      << "the last covers those before";
  EXPECT_EQ(find_mount(kMounts, 0, makedev(254, 0))->type, "ext4");
  EXPECT_FALSE(find_mount(kMounts, 0, makedev(9, 9)));
}

TEST(Mountinfo, LinesOfAnotherShapeArePassedOver) {
  EXPECT_FALSE(parse_mount(""));
  EXPECT_FALSE(parse_mount("garbage without a dash"));
}

}  // namespace
}  // namespace pario::trace
