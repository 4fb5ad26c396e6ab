#include "core/trace/counters.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "core/trace/trace.hpp"

namespace pario::trace {
namespace {

constexpr std::uint64_t kDuration = 10;

/// A row and a clock that goes 100 ticks per call.
class Counters : public testing::Test {
 protected:
  void make(Op op, std::uint64_t offset, std::uint64_t asked, std::int64_t result,
            std::uint32_t open_flags = 0) {
    now += 100;
    Call call{.function = 0, .op = op, .start = now, .end = now + kDuration};
    call.offset = offset;
    call.asked = asked;
    call.result = result;
    call.open_flags = open_flags;
    call.flags = flags;
    apply(row, call, nested);
  }
  void read(std::uint64_t offset, std::uint64_t size) {
    make(Op::read, offset, size, static_cast<std::int64_t>(size));
  }
  void write(std::uint64_t offset, std::uint64_t size) {
    make(Op::write, offset, size, static_cast<std::int64_t>(size));
  }

  Record row{};
  std::uint64_t now = 0;
  std::uint8_t flags = 0;
  bool nested = false;
};

TEST_F(Counters, SumCallsBytesAndTimes) {
  write(0, 100);
  write(100, 50);
  EXPECT_EQ(row.writes, 2u);
  EXPECT_EQ(row.bytes_written, 150u);
  EXPECT_EQ(row.write_time, 2 * kDuration);
  EXPECT_EQ(row.end_written, 150u);
  EXPECT_EQ(row.first_write, 100u);
  EXPECT_EQ(row.last_write, 200u + kDuration);
  EXPECT_EQ(row.reads, 0u);
}

TEST_F(Counters, TellConsecutiveFromForwardAndBackwardAccess) {
  write(0, 10);   // first: neither
  write(10, 10);  // consecutive
  write(50, 10);  // forward, gap
  write(0, 10);   // backward
  EXPECT_EQ(row.consecutive_writes, 1u);
  EXPECT_EQ(row.forward_writes, 1u);
}

TEST_F(Counters, SeeAStrideOnceItRepeats) {
  read(0, 8);
  read(100, 8);  // the stride is set
  read(200, 8);
  read(300, 8);
  read(350, 8);  // another
  EXPECT_EQ(row.strided_reads, 2u);
  EXPECT_EQ(row.forward_reads, 4u);
  EXPECT_EQ(row.consecutive_reads, 0u);
}

TEST_F(Counters, DoNotTakeRepeatedReadsOfOnePlaceForAStride) {
  for (int i = 0; i < 5; ++i) read(64, 8);
  EXPECT_EQ(row.strided_reads, 0u);
  EXPECT_EQ(row.forward_reads, 0u);
}

TEST_F(Counters, SeeStridesBackwards) {
  read(1000, 8);
  read(900, 8);
  read(800, 8);
  EXPECT_EQ(row.strided_reads, 1u);
}

TEST_F(Counters, KeepReadsAndWritesApart) {
  read(0, 10);
  write(0, 10);
  read(10, 10);
  write(10, 10);
  EXPECT_EQ(row.consecutive_reads, 1u);
  EXPECT_EQ(row.consecutive_writes, 1u);
  EXPECT_EQ(row.switches, 3u);
}

TEST_F(Counters, CountUnalignedAgainstTheBlockSize) {
  row.block_size = 4096;
  write(4096, 1);
  write(4097, 1);
  row.block_size = 3000;  // no power of two
  write(6000, 1);
  write(6001, 1);
  EXPECT_EQ(row.unaligned_writes, 2u);
  row.block_size = 0;  // not known
  write(1, 1);
  EXPECT_EQ(row.unaligned_writes, 2u);
}

TEST_F(Counters, SortSizesIntoDecimalBins) {
  for (const std::uint64_t bound : {100, 1'000, 10'000, 100'000, 1'000'000, 4'000'000, 10'000'000,
                                    100'000'000, 1'000'000'000}) {
    read(0, bound);
    read(0, bound + 1);
  }
  read(0, 0);
  read(0, 10'000'000'000);
  for (std::uint64_t Record::* bin :
       {&Record::read_size_0, &Record::read_size_1, &Record::read_size_2, &Record::read_size_3,
        &Record::read_size_4, &Record::read_size_5, &Record::read_size_6, &Record::read_size_7,
        &Record::read_size_8, &Record::read_size_9})
    EXPECT_EQ(row.*bin, 2u);
}

TEST_F(Counters, TellFailedZeroAndShortCalls) {
  make(Op::read, 0, 10, -1);
  make(Op::read, 0, 10, 0);
  make(Op::read, 0, 10, 4);
  make(Op::read, 0, 0, 0);
  EXPECT_EQ(row.failed, 1u);
  EXPECT_EQ(row.zero_reads, 1u);
  EXPECT_EQ(row.short_calls, 1u);
  EXPECT_EQ(row.reads, 4u);
  EXPECT_EQ(row.bytes_read, 4u);
}

TEST_F(Counters, CountAFailedOpenApart) {
  make(Op::open, 0, 0, -1);
  make(Op::open, 0, 0, 3, O_RDWR | O_APPEND);
  EXPECT_EQ(row.opens, 1u);
  EXPECT_EQ(row.failed_opens, 1u);
  EXPECT_EQ(row.failed, 1u);
  EXPECT_EQ(row.open_time, 2 * kDuration);
  EXPECT_EQ(row.first_open, 200u);
  EXPECT_EQ(row.open_flags, static_cast<std::uint64_t>(O_RDWR | O_APPEND));
}

TEST_F(Counters, CountTheDescriptorsFlags) {
  make(Op::write, 0, 1, 1, O_APPEND);
  make(Op::write, 0, 1, 1, O_SYNC);
  make(Op::write, 0, 1, 1, O_DSYNC);
  make(Op::read, 0, 1, 1, O_DIRECT);
  EXPECT_EQ(row.append_writes, 1u);
  EXPECT_EQ(row.sync_writes, 2u);
  EXPECT_EQ(row.direct_calls, 1u);
}

TEST_F(Counters, KeepTheSlowestCallWithItsSize) {
  read(0, 10);
  now += 100;
  Call slow{.function = 0, .op = Op::read, .start = now, .end = now + 5000};
  slow.result = 77;
  apply(row, slow, false);
  read(0, 20);
  EXPECT_EQ(row.slowest_read_time, 5000u);
  EXPECT_EQ(row.slowest_read_size, 77u);
}

TEST_F(Counters, TakeARunOfEqualCallsForSoManyCalls) {
  row.block_size = 4096;
  write(0, 4);
  Call run{.function = 0, .op = Op::write, .start = 200, .end = 300};
  run.offset = 4;
  run.asked = 100;
  run.result = 100;
  run.calls = 50;  // of two bytes each
  apply(row, run, false);
  write(104, 4);
  EXPECT_EQ(row.writes, 52u);
  EXPECT_EQ(row.bytes_written, 108u);
  EXPECT_EQ(row.write_size_0, 52u);
  EXPECT_EQ(row.consecutive_writes, 51u);
  EXPECT_EQ(row.unaligned_writes, 51u);
  EXPECT_EQ(row.slowest_write_time, kDuration) << "two ticks each";
}

TEST_F(Counters, PutUnknownOffsetsIntoNoPattern) {
  make(Op::write, kUnknownOffset, 10, 10);
  make(Op::write, kUnknownOffset, 10, 10);
  EXPECT_EQ(row.consecutive_writes + row.forward_writes + row.strided_writes + row.unaligned_writes,
            0u);
  EXPECT_EQ(row.end_written, 0u);
  EXPECT_EQ(row.bytes_written, 20u);
}

TEST_F(Counters, ShowThePartInsideMpiIo) {
  nested = true;
  read(0, 1);
  write(0, 1);
  make(Op::sync, kUnknownOffset, 0, 0);
  EXPECT_EQ(row.nested_reads, 1u);
  EXPECT_EQ(row.nested_writes, 1u);
  EXPECT_EQ(row.nested_read_time, kDuration);
  EXPECT_EQ(row.nested_other_time, kDuration);
}

TEST_F(Counters, ShowCollectiveCalls) {
  flags = kCollective;
  make(Op::open, 0, 0, 0);
  write(0, 1);
  EXPECT_EQ(row.collective_opens, 1u);
  EXPECT_EQ(row.collective_writes, 1u);
  EXPECT_EQ(row.collective_write_time, kDuration);
}

TEST_F(Counters, SeeSeeksThatGoNowhere) {
  make(Op::seek, 100, 100, 0);
  make(Op::seek, 100, 50, 0);
  make(Op::seek, kUnknownOffset, kUnknownOffset, 0);
  EXPECT_EQ(row.seeks, 3u);
  EXPECT_EQ(row.repeated_seeks, 1u);
}

TEST_F(Counters, TellMappingFromUnmapping) {
  make(Op::map, 0, 8192, 0);
  make(Op::map, kUnknownOffset, 0, 0);
  EXPECT_EQ(row.maps, 1u);
  EXPECT_EQ(row.bytes_mapped, 8192u);
  EXPECT_EQ(row.map_time, 2 * kDuration);
}

TEST(Samples, TellNumbersFromTextFromBytes) {
  const Sample numbers = look_at(" 1.25E+03  -7.5E-01\n 0.0\n");
  EXPECT_TRUE(numbers.text && numbers.numbers);
  EXPECT_EQ(numbers.lines, 2u);
  EXPECT_TRUE(look_at("aF0.6472115310819988\naF1.720407427186406\n").numbers) << "with markup";
  EXPECT_FALSE(look_at("2026-01-01T12:00,30.5,17\n").numbers) << "times";
  const Sample text = look_at("time step 17 done\n");
  EXPECT_TRUE(text.text && !text.numbers);
  EXPECT_FALSE(look_at("1021,255.25,ok\n1022,255.5,ok\n").numbers) << "a table with words";
  EXPECT_FALSE(look_at(std::string(4096, 'd')).numbers) << "letters of exponents, no digits";
  const Sample bytes = look_at(std::string_view("\0\1\2abc", 6));
  EXPECT_TRUE(!bytes.text && !bytes.numbers);
}

TEST(Samples, LookAtTheFirstBytesOnly) {
  EXPECT_EQ(look_at(std::string(100000, 'a')).bytes, kSampleSize);
}

TEST(Samples, OfReadsHaveCountersOfTheirOwn) {
  Record row{};
  apply(row, look_at("1.5 2.5\n"), Op::read);
  apply(row, look_at("text"), Op::read);
  EXPECT_EQ(row.sampled_reads, 2u);
  EXPECT_EQ(row.sampled_read_numbers, 1u);
  EXPECT_EQ(row.sampled_writes, 0u);
}

TEST(Samples, BecomeRareAsWritesGrowMany) {
  Record row{};
  int sampled = 0;
  for (row.writes = 1; row.writes <= 4096 * 10; ++row.writes) sampled += is_sampled(row.writes, 1);
  EXPECT_EQ(sampled, 13 + 9);
}

}  // namespace
}  // namespace pario::trace
