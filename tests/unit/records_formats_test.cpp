// The boundaries of records by format; index files, and errors for files that have changed since
// they were indexed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "core/file/publication.hpp"
#include "data/records/checksum.hpp"
#include "data/records/formats.hpp"
#include "records_support.hpp"

namespace pario::records {
namespace {

using Texts = std::vector<std::string>;

class Formats : public Records {
 protected:
  /// Reads the records of a file by its index.
  static Texts records(const IndexRequest& request) {
    auto image = make_index(request);
    if (!image.ok()) return {image.error().text()};
    return split(bytes_of(request.path), *Index::read(std::move(*image), request.path));
  }
  static Texts split(const std::string& bytes, const Index& index) {
    Texts out;
    for (std::uint64_t i = 0; i < index.count(); ++i)
      out.push_back(bytes.substr(index.span(i).begin, index.span(i).length()));
    return out;
  }
  Texts lines(const std::string& bytes, unsigned threads = 2) const {
    return records({.path = make("lines", bytes), .kind = Kind::lines, .threads = threads});
  }
  static void write_index(const IndexRequest& request) {
    const auto image = make_index(request);
    ASSERT_TRUE(image.ok()) << image.error().text();
    ASSERT_TRUE(write_whole(index_path(request.path), *image).ok());
  }
  static std::string trouble(const std::string& path) {
    const auto index = open_index(path);
    return index.ok() ? "" : index.error().text();
  }
};

std::string tfrecord(const std::string& data) {
  const std::uint64_t length = data.size();
  std::string out(reinterpret_cast<const char*>(&length), sizeof length);
  const std::uint32_t head = masked_crc32c(as_bytes(out)), tail = masked_crc32c(as_bytes(data));
  out.append(reinterpret_cast<const char*>(&head), 4)
      .append(data)
      .append(reinterpret_cast<const char*>(&tail), 4);
  return out;
}

std::string tar_member(const std::string& name, const std::string& data, char type = '0') {
  std::string header(512, '\0');
  std::memcpy(header.data(), name.data(), std::min<std::size_t>(name.size(), 100));
  std::snprintf(header.data() + 124, 12, "%011lo", data.size());
  header[156] = type;
  std::memcpy(header.data() + 257, "ustar\0", 6);
  std::memset(header.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(header.data() + 148, 8, "%06o", sum);
  return header + data + std::string((512 - data.size() % 512) % 512, '\0');
}

const std::string kTarEnd(1024, '\0');

TEST_F(Formats, LinesEndWithTheirLineFeed) {
  EXPECT_EQ(lines("a\nbb\n\nccc\n"), (Texts{"a\n", "bb\n", "\n", "ccc\n"}));
  EXPECT_EQ(lines("a\r\nb"), (Texts{"a\r\n", "b"}));
  EXPECT_EQ(lines(std::string("\0\n\xff\0", 4)),
            (Texts{std::string("\0\n", 2), std::string("\xff\0", 2)}));
  EXPECT_EQ(lines(""), Texts{});
  EXPECT_EQ(lines("\n"), Texts{"\n"});
}

TEST_F(Formats, LinesAreTheSameForAnyNumberOfThreads) {
  std::string bytes;
  for (int i = 0; i < 900'000; ++i) bytes += std::to_string(i * 7919LL % 1'000'003) + "\n";
  bytes += std::string(9 << 20, 'x');  // longer than several threads' parts
  const Texts one = lines(bytes, 1);
  EXPECT_EQ(one.size(), 900'001U);
  EXPECT_EQ(lines(bytes, 4), one);
}

TEST_F(Formats, DataOfALineIsWithoutItsEnd) {
  const auto data = [](const std::string& line) {
    return line.substr(0, line_payload(as_bytes(line)).end);
  };
  EXPECT_EQ(data("a\n"), "a");
  EXPECT_EQ(data("a\r\n"), "a");
  EXPECT_EQ(data("a\r"), "a\r");
  EXPECT_EQ(data("\n"), "");
}

TEST_F(Formats, FixedSizesMustDivideTheFile) {
  const std::string path = make("fixed", "abcdef");
  EXPECT_EQ(records({.path = path, .kind = Kind::fixed, .record_size = 2}),
            (Texts{"ab", "cd", "ef"}));
  EXPECT_NE(records({.path = path, .kind = Kind::fixed, .record_size = 4})[0].find(
                "6 bytes are no multiple of the 4"),
            std::string::npos);
  EXPECT_EQ(records({.path = path, .kind = Kind::fixed, .record_size = 4, .drop_last = true}),
            Texts{"abcd"});
}

TEST_F(Formats, RawRecordsHaveTheirLengthsBeside) {
  const std::string path = make("raw", "abcdef");
  const std::vector<std::uint64_t> lengths{1, 0, 5}, few{1, 2}, many{1, 9};
  EXPECT_EQ(records({.path = path, .kind = Kind::raw, .lengths = lengths}),
            (Texts{"a", "", "bcdef"}));
  EXPECT_NE(
      records({.path = path, .kind = Kind::raw, .lengths = few})[0].find("3 bytes, the file has 6"),
      std::string::npos);
  EXPECT_NE(
      records({.path = path, .kind = Kind::raw, .lengths = many})[0].find("more than the 6 bytes"),
      std::string::npos);
}

TEST_F(Formats, TfRecordsAreFollowedByTheirLengths) {
  const Texts all{tfrecord("first"), tfrecord(""), tfrecord(std::string(3 << 20, 'x')),
                  tfrecord("last")};
  const std::string path = make("a.tfrecord", all[0] + all[1] + all[2] + all[3]);
  EXPECT_EQ(records({.path = path, .kind = Kind::tfrecord}), all);
  EXPECT_EQ(tfrecord_payload(as_bytes(all[0])), (base::Extent{12, 17}));
}

TEST_F(Formats, BrokenTfRecordsAreNamedWithTheirPlace) {
  const std::string one = tfrecord("first");
  EXPECT_NE(records({.path = make("cut", one + one.substr(0, 14)), .kind = Kind::tfrecord})[0].find(
                "[21, 35): EBADMSG (Bad message): the last record is cut off"),
            std::string::npos);
  EXPECT_NE(
      records({.path = make("bad", one + std::string(20, 'x')), .kind = Kind::tfrecord})[0].find(
          "[21, 41): EBADMSG (Bad message): no TFRecord begins here"),
      std::string::npos);
}

TEST_F(Formats, MembersOfATarFileOfOneNameAreOneRecord) {
  const Texts all{tar_member("d/1.jpg", "picture") + tar_member("d/1.cls", "7"),
                  tar_member("d/2.seg.png", "x") + tar_member("d/2.cls", "8"),
                  tar_member("e/2.cls", "9")};
  const std::string path = make("a.tar", all[0] + all[1] + all[2] + kTarEnd);
  EXPECT_EQ(records({.path = path, .kind = Kind::tar}), all);
}

TEST_F(Formats, LongNamesAndDirectoriesInATarFileStayWithTheirRecords) {
  const std::string stem(120, 'n');
  const std::string gnu = tar_member("././@LongLink", stem + ".jpg" + '\0', 'L') +
                          tar_member(stem.substr(0, 100), "picture");
  const std::string value = stem + ".cls",
                    pax = tar_member("PaxHeader",
                                     std::to_string(6 + value.size() + 4) + " path=" + value + "\n",
                                     'x');
  const Texts all{tar_member("d/", "", '5') + gnu + pax + tar_member("short.cls", "7"),
                  tar_member("other.jpg", "x") + tar_member("README", "y")};
  EXPECT_EQ(records({.path = make("a.tar", all[0] + all[1] + kTarEnd), .kind = Kind::tar}), all);
}

TEST_F(Formats, HeadsOfTarMembersAreFoundAgain) {
  std::string tar;
  Texts members;
  for (const std::string& name : {std::string("a.bin"), "d/" + std::string(200, 'x') + ".bin",
                                  std::string(95, 'y') + ".bin"}) {
    const auto head = tar_head({.name = name, .size = 3, .modified = 1'700'000'000});
    members.push_back(std::string(reinterpret_cast<const char*>(head.data()), head.size()) + "abc" +
                      std::string(kTarBlock - 3, '\0'));
    tar += members.back();
  }
  EXPECT_EQ(records({.path = make("a.tar", tar + std::string(1024, '\0')), .kind = Kind::tar}),
            members);
}

TEST_F(Formats, AMemberOfATarFileMayHaveTerabytes) {
  const auto head = tar_head({.name = "a.bin", .size = 5ULL << 40});
  const std::string tar(reinterpret_cast<const char*>(head.data()), head.size());
  EXPECT_EQ(tar.substr(124, 12), std::string("\x80\0\0\0\0\0\x05\0\0\0\0\0", 12));
  EXPECT_EQ(tar_head({.name = "a.bin", .size = 8}).size(), kTarBlock);
}

TEST_F(Formats, ATarFileThatIsCutOffIsAnError) {
  const std::string member = tar_member("a.x", std::string(600, 'x'));
  EXPECT_NE(
      records({.path = make("a.tar", member + member.substr(0, 1000)), .kind = Kind::tar})[0].find(
          "the tar file is cut off"),
      std::string::npos);
}

TEST_F(Formats, ASearchContinuesBehindADamagedTarHeader) {
  Texts all;
  for (const char* name : {"a.x", "a.y", "b.x", "b.y", "c.x"})
    all.push_back(tar_member(name, std::string(700, name[2])));
  const auto damaged = [&](std::size_t member, std::size_t byte) {
    Texts bytes = all;
    bytes[member][byte] ^= 4;
    return bytes;
  };
  const auto found = [&](const Texts& bytes) {
    std::string tar;
    for (const std::string& one : bytes) tar += one;
    return records(
        {.path = make("a.tar", tar + kTarEnd), .kind = Kind::tar, .damaged = OnDamage::skip});
  };
  constexpr std::size_t kName = 0, kSize = 132, kTime = 140;
  Texts bytes = damaged(1, kTime);  // the name says that it belongs to a
  EXPECT_EQ(found(bytes), (Texts{bytes[0] + bytes[1], bytes[2] + bytes[3], bytes[4]}));
  bytes = damaged(2, kSize);  // that it belongs to b; the next header is searched
  EXPECT_EQ(found(bytes), (Texts{bytes[0] + bytes[1], bytes[2] + bytes[3], bytes[4]}));
  bytes = damaged(2, kName);  // the name is of no neighbour: a and b may be incomplete
  EXPECT_EQ(found(bytes), (Texts{bytes[0] + bytes[1] + bytes[2] + bytes[3], bytes[4]}));
  bytes = damaged(0, kName);
  EXPECT_EQ(found(bytes), (Texts{bytes[0] + bytes[1], bytes[2] + bytes[3], bytes[4]}));
  bytes = damaged(4, kSize);  // the last: the rest of the file is that of a damaged record
  EXPECT_EQ(found(bytes), (Texts{bytes[0] + bytes[1], bytes[2] + bytes[3] + bytes[4] + kTarEnd}));
  EXPECT_NE(found({std::string(2048, 'x')})[0].find("no member of a tar file begins here"),
            std::string::npos);
}

TEST_F(Formats, AMemberWithoutItsLongNameIsPartOfTheDamage) {
  const std::string stem(120, 's');
  std::string name = tar_member("././@LongLink", stem + ".x" + '\0', 'L');
  const std::string first = tar_member("a.x", "1"), cut = tar_member(stem.substr(0, 100), "2"),
                    whole = tar_member("././@LongLink", stem + ".y" + '\0', 'L') +
                            tar_member(stem.substr(0, 100), "3"),
                    last = tar_member("z.x", "4");
  name[140] ^= 4;
  EXPECT_EQ(records({.path = make("a.tar", first + name + cut + whole + last + kTarEnd),
                     .kind = Kind::tar,
                     .damaged = OnDamage::skip}),
            (Texts{first + name + cut + whole, last}));
}

TEST_F(Formats, FilesOfADirectoryHaveTheirNames) {
  make("d/b/two", "22");
  ::chmod(make("d/a", "1").c_str(), 0640);
  make("d/b/empty", "");
  auto image = make_index({.path = file("d"), .kind = Kind::directory});
  ASSERT_TRUE(image.ok());
  const auto index = Index::read(std::move(*image), "d");
  ASSERT_TRUE(index.ok());
  ASSERT_EQ(index->count(), 3U);
  EXPECT_EQ(index->name(0), "a");
  EXPECT_EQ(index->mode(0), 0640U);
  EXPECT_EQ(index->name(1), "b/empty");
  EXPECT_EQ(index->name(2), "b/two");
  EXPECT_EQ(index->span(2), (base::Extent{1, 3}));
  EXPECT_GT(index->modification_time(2), 1'000'000'000'000'000'000);
}

TEST_F(Formats, FormatsAreGuessedByEndingOrContent) {
  EXPECT_EQ(guess_format(make("a.jsonl", ""))->kind, Kind::lines);
  EXPECT_EQ(guess_format(make("t", tfrecord("x")))->kind, Kind::tfrecord);
  EXPECT_EQ(guess_format(make("w", tar_member("a.b", "x")))->kind, Kind::tar);
  EXPECT_EQ(guess_format(make("p", "PAR1"))->kind, Kind::parquet);
  EXPECT_EQ(guess_format(make("r-00000-of-00002", "\x83\xaf\x70\xd1\x0d\x88\x4a\x3f"))->kind,
            Kind::array_record);
  EXPECT_EQ(guess_format(directory)->kind, Kind::directory);
  EXPECT_EQ(guess_format(make("unknown", "what is this?")), nullptr);
}

TEST_F(Formats, AnIndexIsReadFromItsFile) {
  const std::string path = make("a.txt", "a\nbb\n");
  write_index({.path = path});
  const auto index = open_index(path);
  ASSERT_TRUE(index.ok()) << index.error().text();
  EXPECT_EQ(split("a\nbb\n", *index), (Texts{"a\n", "bb\n"}));
  EXPECT_TRUE(index->verify().ok());
}

TEST_F(Formats, AnIndexOfGroupsSaysWhichRecordsTheyHave) {
  const std::string path = make("a.parquet", std::string(100, 'x'));
  const std::vector<std::uint64_t> begins = {4, 30, 30, 90}, firsts = {0, 7, 7, 19};
  IndexRequest request{.path = path, .kind = Kind::parquet};
  request.begins = begins;
  request.firsts = firsts;
  write_index(request);
  const auto index = open_groups(path);
  ASSERT_TRUE(index.ok()) << index.error().text();
  EXPECT_TRUE(index->verify().ok());
  ASSERT_EQ(index->count(), 3);
  for (std::uint64_t group = 0; group < 3; ++group)
    EXPECT_EQ(index->span(group), (base::Extent{begins[group], begins[group + 1]}));
  for (std::uint64_t group = 0; group < 4; ++group)
    EXPECT_EQ(index->first_of_group(group), firsts[group]);
  EXPECT_NE(trouble(path).find("pario records convert"), std::string::npos) << trouble(path);
  make("a.parquet", std::string(101, 'x'));
  EXPECT_EQ(open_groups(path).error().number, ESTALE);
}

TEST_F(Formats, GroupsThatNobodyGaveOrThatOverlapAreNoIndex) {
  const std::string path = make("a.parquet", std::string(100, 'x'));
  const std::vector<std::uint64_t> begins = {4, 30, 20}, firsts = {0, 7, 8}, behind = {4, 200, 300};
  IndexRequest request{.path = path, .kind = Kind::parquet};
  EXPECT_EQ(make_index(request).error().number, EINVAL);
  request.firsts = firsts;
  request.begins = begins;
  EXPECT_EQ(make_index(request).error().number, EINVAL);
  request.begins = behind;
  EXPECT_EQ(make_index(request).error().number, EINVAL);
  write_index({.path = make("a.txt", "one\ntwo\n")});
  EXPECT_EQ(open_groups(file("a.txt")).error().number, EINVAL);
}

TEST_F(Formats, GroupsThatDoNotHaveTheRecordsFromTheFirstOneOnAreDamage) {
  const std::vector<std::uint64_t> begins = {4, 30};
  for (const std::vector<std::uint64_t>& firsts :
       {std::vector<std::uint64_t>{5, 7}, {0, kLargestNumber}}) {
    IndexRequest request{.path = make("a.parquet", std::string(100, 'x')), .kind = Kind::parquet};
    request.begins = begins;
    request.firsts = firsts;
    EXPECT_EQ(make_index(request).error().number, EINVAL);
    IndexBuilder builder;  // an index by another program
    builder.begin(4);
    for (const std::uint64_t first : firsts) builder.group(first);
    const auto index = Index::read(builder.finish(Kind::parquet, 30, {}), request.path);
    ASSERT_TRUE(index.ok()) << index.error().text();
    EXPECT_EQ(index->verify().error().number, EINVAL);
  }
}

TEST_F(Formats, AnIndexThatWasKilledIsRemovedByTheNext) {
  make(file::part_path("a.txt.pidx", file::random_part_number()), "half");
  write_index({.path = make("a.txt", "one\ntwo\n")});
  write_index({.path = file("a.txt")});  // replaces an older one
  EXPECT_EQ(entries(), (Texts{"a.txt", "a.txt.pidx"}));
}

TEST_F(Formats, AFileThatChangesWhileItIsIndexedHasNoIndex) {
  const std::string path = make("a.txt", "one\ntwo\n");
  const auto made = make_index({.path = path}, [&](std::uint64_t, std::uint64_t) {
    const timespec times[] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
    ::utimensat(AT_FDCWD, path.c_str(), times, 0);
    return true;
  });
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().text().find("changed while it was indexed"), std::string::npos);
}

TEST_F(Formats, TenThousandLinesNeedTwentyThousandBytes) {
  std::string bytes;
  for (int i = 0; i < 10'000; ++i)
    bytes += std::string(static_cast<std::size_t>(50 + i * 7919 % 100), 'x') + "\n";
  EXPECT_LT(make_index({.path = make("a", bytes)})->size(), 20'000U);
}

TEST_F(Formats, WhatDiffersIsSaidOfAFileThatHasChanged) {
  const std::string path = make("a.txt", "a\nbb\n");
  EXPECT_NE(trouble(path).find("pario records index makes it"), std::string::npos);
  write_index({.path = path});
  make("a.txt", "a\nbb\nccc\n");
  EXPECT_NE(trouble(path).find("it has grown from 5 to 9 bytes"), std::string::npos);
  make("a.txt", "a\n");
  EXPECT_NE(trouble(path).find("it has shrunk from 5 to 2 bytes"), std::string::npos);
  make("a.txt", "b\nbb\n");
  EXPECT_NE(trouble(path).find("it was modified"), std::string::npos);
}

TEST_F(Formats, AnIndexGrowsWithItsFileAndIsTheOneOfTheWhole) {
  const std::string path = make("a.txt", "a\nbb");
  auto older = Index::read(*make_index({.path = path}), path);
  make("a.txt", "a\nbbb\nccc\n");
  const auto grown = grow_index({.path = path}, *older);
  ASSERT_TRUE(grown.ok()) << grown.error().text();
  EXPECT_EQ(*grown, *make_index({.path = path}));
}

TEST_F(Formats, AnIndexDoesNotGrowWithAFileThatWasWrittenAnew) {
  const std::string path = make("a.txt", "a\nbb\n");
  auto older = Index::read(*make_index({.path = path}), path);
  make("a.txt", "x\nbb\nccc\n");
  const auto grown = grow_index({.path = path}, *older);
  ASSERT_FALSE(grown.ok());
  EXPECT_NE(grown.error().text().find("not only appended to"), std::string::npos);
}

TEST_F(Formats, DamageOfAnIndexIsNoticed) {
  const std::string path = make("a.txt", std::string(1000, '\n'));
  const auto image = *make_index({.path = path});
  for (const std::size_t at : {0U, 8U, 20U, 60U}) {
    auto damaged = image;
    damaged[at] ^= std::byte{1};
    EXPECT_FALSE(Index::read(damaged, path).ok()) << at;
  }
  auto damaged = image;
  damaged[damaged.size() - 9] ^= std::byte{1};
  const auto index = Index::read(damaged, path);
  EXPECT_FALSE(index.ok() && index->verify().ok());
  EXPECT_FALSE(Index::read({image.begin(), image.begin() + 300}, path).ok());
}

TEST_F(Formats, RecordsOfADamagedIndexLieWithinTheFile) {
  const std::string path = make("a.txt", std::string(300, '\n'));
  const auto image = *make_index({.path = path});
  for (const std::size_t at : {256U, 264U, 280U, 304U})  // bases and strides of its blocks
    for (const std::uint64_t number :
         {std::uint64_t{1}, std::uint64_t{1} << 50, ~std::uint64_t{99}}) {
      auto damaged = image;
      std::memcpy(damaged.data() + at, &number, sizeof number);
      const auto index = Index::read(damaged, path);
      if (damaged == image || !index.ok()) continue;
      EXPECT_FALSE(index->verify().ok());
      EXPECT_FALSE(grow_index({.path = path}, *index).ok());
      for (std::uint64_t record = 0; record < index->count(); ++record) {
        const base::Extent span = index->span(record);
        ASSERT_TRUE(span.begin <= span.end && span.end <= index->whole().end)
            << at << " " << number << " " << record;
      }
    }
}

TEST_F(Formats, RecordsThatEndBeforeTheyBeginOrBehindTheFileAreADamage) {
  IndexBuilder builder;
  builder.begin(5);
  builder.begin(0);
  EXPECT_FALSE(Index::read(builder.finish(Kind::raw, 9, {}), "raw")->verify().ok());
  const std::string path = make("a.txt", "a\nbb\n");
  builder.begin(0);
  ASSERT_TRUE(
      write_whole(index_path(path), builder.finish(Kind::lines, 6, *fingerprint_of(path, {0, 5})))
          .ok());
  EXPECT_NE(trouble(path).find("records lie behind its end"), std::string::npos);
}

}  // namespace
}  // namespace pario::records
