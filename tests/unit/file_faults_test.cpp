// Injected errors of files, and their effects.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <vector>

#include "core/file/file.hpp"

namespace pario::file {
namespace {

using Bytes = std::vector<std::byte>;

std::unique_ptr<File> failing(const std::string& operation, int number) {
  return make_faulty(make_memory("/pretend/file"),
                     [operation, number](const char* called, base::Extent) {
                       return operation == called ? Fault{Fault::Kind::error, number} : Fault{};
                     });
}

TEST(Faults, AnErrorNamesOperationPathExtentAndErrno) {
  const auto status = failing("write", ENOSPC)->write(4096, Bytes(100));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().text(),
            "pwrite /pretend/file [4096, 4196): ENOSPC (No space left on device)");
}

TEST(Faults, AnErrorHalfwaySaysHowFarItCame) {
  unsigned calls = 0;
  const auto file = make_faulty(make_memory("m"), [&calls](const char*, base::Extent) {
    return calls++ == 0 ? Fault{Fault::Kind::short_transfer} : Fault{Fault::Kind::error, EIO};
  });
  EXPECT_EQ(file->write(0, Bytes(1000)).error().detail, "after 500 bytes");
}

TEST(Faults, EveryOperationReportsItsOwn) {
  Bytes room(10);
  EXPECT_EQ(failing("read", EIO)->read(0, room).error().number, EIO);
  EXPECT_EQ(failing("size", EIO)->size().error().number, EIO);
  EXPECT_EQ(failing("resize", EFBIG)->resize(5).error().number, EFBIG);
  EXPECT_EQ(failing("preallocate", ENOSPC)->preallocate(5).error().number, ENOSPC);
  EXPECT_EQ(failing("sync", EDQUOT)->sync().error().number, EDQUOT);
  EXPECT_EQ(failing("lock", ENOLCK)->lock({0, 1}, true).error().number, ENOLCK);
  EXPECT_EQ(failing("unlock", ENOLCK)->unlock({0, 1}).error().number, ENOLCK);
  EXPECT_EQ(failing("refresh", ESTALE)->refresh().error().number, ESTALE);
  EXPECT_EQ(failing("close", EIO)->close().error().number, EIO);
}

TEST(Faults, InterruptedTransfersGoOn) {
  unsigned left = 20;
  const auto file = make_faulty(make_memory("m"), [&left](const char*, base::Extent) {
    return left > 0 && left-- > 0 ? Fault{Fault::Kind::interrupted} : Fault{};
  });
  EXPECT_TRUE(file->write(0, Bytes(10)).ok());
  EXPECT_EQ(file->size().value(), 10U);
}

TEST(Faults, WhatIsNotReadyIsTriedAgain) {
  unsigned left = 3;
  const auto file = make_faulty(make_memory("m"), [&left](const char*, base::Extent) {
    return left > 0 && left-- > 0 ? Fault{Fault::Kind::error, EAGAIN} : Fault{};
  });
  EXPECT_TRUE(file->write(0, Bytes(10)).ok());
}

TEST(Faults, ShortTransfersAreCompletedByteByByteIfNeedBe) {
  std::vector<std::uint64_t> asked;
  const auto file = make_faulty(make_memory("m"), [&asked](const char*, base::Extent where) {
    asked.push_back(where.length());
    return Fault{Fault::Kind::short_transfer};
  });
  EXPECT_TRUE(file->write(0, Bytes(8)).ok());
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{8, 4, 2, 1}));
}

}  // namespace
}  // namespace pario::file
