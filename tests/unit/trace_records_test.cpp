#include <fcntl.h>

#include <set>
#include <thread>
#include <vector>

#include "core/trace/name_hash.hpp"
#include "log_reader.hpp"
#include "tracing.hpp"

namespace pario::trace {
namespace {

using Records = Tracing;

TEST_F(Records, AreOnePerPathAndLayer) {
  begin();
  Record* posix = record_of("/a");
  EXPECT_EQ(record_of("/a"), posix);
  EXPECT_NE(record_of("/a", Layer::stdio), posix);
  EXPECT_NE(record_of("/b"), posix);
  EXPECT_EQ(path_of(posix), "/a");
}

TEST(HashOfNames, DependsOnEveryByteAtEveryLength) {
  std::set<std::uint64_t> seen{hash_name("")};
  std::size_t names = 1;
  for (std::size_t length = 1; length < 100; ++length)
    for (std::size_t place = 0; place < length; ++place, ++names) {
      std::string text(length, 'x');
      text[place] = 'y';
      seen.insert(hash_name(text));
    }
  EXPECT_EQ(seen.size(), names);
}

TEST(HashOfNames, SpreadsNumberedNamesOverTheLowBits) {
  std::set<std::uint64_t> low;
  for (int i = 0; i < 4096; ++i)
    low.insert(hash_name("/scratch/project/run/output." + std::to_string(i)) % 4096);
  EXPECT_GT(low.size(), 2400u);  // chance hits 4096 (1 - 1/e) = 2589
}

TEST_F(Records, TakeTheirFactsOnce) {
  begin();
  int asked = 0;
  const auto facts = [](void* context) {
    ++*static_cast<int*>(context);
    return FileFacts{.kind = S_IFREG, .device = 5, .inode = 6, .block_size = 4096, .size = 77};
  };
  for (int i = 0; i < 3; ++i) find_record(Layer::posix, "/a", facts, &asked);
  EXPECT_EQ(asked, 1);
  const ReadLog log = read_only_log(directory);
  EXPECT_EQ(log.record("/a").inode, 6u);
  EXPECT_EQ(log.record("/a").block_size, 4096u);
  EXPECT_EQ(log.record("/a").size_at_open, 77u);
}

TEST_F(Records, LearnOnceOfAFileThatWasNotThere) {
  begin();
  Record* row = record_of("/a");
  ASSERT_TRUE(is_bare(*row));
  for (const std::uint64_t inode : {6, 7})
    complete(*row,
             {.kind = S_IFREG, .device = 5, .inode = inode, .block_size = 4096, .filesystem = 3});
  EXPECT_FALSE(is_bare(*row));
  const ReadLog log = read_only_log(directory);
  EXPECT_EQ(log.record("/a").inode, 6u);
  EXPECT_EQ(log.record("/a").filesystem, 3u);
}

TEST_F(Records, StayFoundWhenThereAreMany) {
  begin();
  std::vector<Record*> rows;
  for (int i = 0; i < 20000; ++i) rows.push_back(record_of("/data/" + std::to_string(i)));
  EXPECT_EQ(std::set(rows.begin(), rows.end()).size(), rows.size());
  for (int i = 0; i < 20000; ++i)
    ASSERT_EQ(record_of("/data/" + std::to_string(i)), rows[static_cast<std::size_t>(i)]);
  const ReadLog log = read_only_log(directory);
  EXPECT_TRUE(log.has_record("/data/19999"));
  EXPECT_EQ(log.process.records, log.records.size());
}

TEST_F(Records, PastTheLimitFoldIntoTheirDirectory) {
  begin({.files_limit = 10});
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < 100; ++i) count(record_of("/data/" + std::to_string(i)), write_call(0, 2));
  const ReadLog log = read_only_log(directory);
  EXPECT_EQ(log.record("/data/9").writes, 2u);
  EXPECT_FALSE(log.has_record("/data/10"));
  EXPECT_EQ(log.record("/data/*").writes, 180u);
  EXPECT_EQ(log.record("/data/*").bytes_written, 360u);
  EXPECT_EQ(log.record("/data/*").folded, 1u);
  EXPECT_EQ(log.process.files_folded, 90u) << "distinct paths";
}

TEST_F(Records, OfAKnownPathInAnotherLayerDoNotCountAgainstTheLimit) {
  begin({.files_limit = 2});
  record_of("/a");
  record_of("/b");
  record_of("/a", Layer::stdio);
  record_of("/b", Layer::mpiio);
  const ReadLog log = read_only_log(directory);
  EXPECT_TRUE(log.has_record("/a", Layer::stdio));
  EXPECT_TRUE(log.has_record("/b", Layer::mpiio));
  EXPECT_EQ(log.process.files_folded, 0u);
}

TEST_F(Records, OfTooManyDirectoriesShareOne) {
  begin({.files_limit = 5});
  for (int i = 0; i < 100; ++i) count(record_of("/d" + std::to_string(i) + "/x"), write_call(0, 1));
  const ReadLog log = read_only_log(directory);
  EXPECT_EQ(log.record("/d5/*").writes, 1u);
  EXPECT_EQ(log.record("*").writes, 90u);
}

TEST_F(Records, AreSharedByThreads) {
  begin();
  constexpr int kThreads = 4, kFiles = 500, kPasses = 20;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([] {
      for (int pass = 0; pass < kPasses; ++pass)
        for (int i = 0; i < kFiles; ++i)
          count(record_of("/data/" + std::to_string(i)), write_call(0, 3));
    });
  for (auto& thread : threads) thread.join();
  finish(1, 0);
  const ReadLog log = read_only_log(directory);
  for (int i = 0; i < kFiles; ++i)
    ASSERT_EQ(log.record("/data/" + std::to_string(i)).writes, kThreads * kPasses);
  EXPECT_EQ(std::set(log.paths.begin(), log.paths.end()).size(), kFiles + 1u)
      << "and the row for the rest";
  EXPECT_EQ(log.calls.at(kWriteId), kThreads * kPasses * kFiles);
  EXPECT_EQ(log.events.size(), static_cast<std::size_t>(kThreads * kPasses * kFiles));
}

TEST_F(Records, TakeAdditionsAndSettings) {
  begin();
  Record* record = record_of("/a");
  set(record, &Record::buffer_size, 4096);
  add(record, &Record::formatted_calls, 2);
  add(record, &Record::formatted_calls, 3);
  EXPECT_EQ(record->buffer_size, 4096u);
  EXPECT_EQ(record->formatted_calls, 5u);
}

TEST_F(Records, LookAtWhatIsWritten) {
  begin();
  Record* record = record_of("/a");
  const std::string line = "  1.0000000E+00  2.0\n";
  Call written = write_call(0, line.size());
  written.data = line.data();
  for (int i = 0; i < 8; ++i) count(record, written);
  EXPECT_EQ(record->sampled_writes, 4u) << "the 1st, 2nd, 4th and 8th";
  EXPECT_EQ(record->sampled_text, 4u);
  EXPECT_EQ(record->sampled_numbers, 4u);
  EXPECT_EQ(record->lines, 4u);
  EXPECT_EQ(record->sampled_bytes, 4 * line.size());
}

TEST_F(Records, KnowTheFileSystemOfAFile) {
  begin();
  const auto facts = [](void* context) { return facts_of(static_cast<const char*>(context)); };
  find_record(Layer::posix, directory, facts, directory.data());
  const auto facts_of_self = [](void*) {
    const int self = open("/proc/self/exe", O_RDONLY);
    const FileFacts known = facts_of(self);
    close(self);
    return known;
  };
  find_record(Layer::posix, "/self", facts_of_self, nullptr);
  const ReadLog log = read_only_log(directory);
  struct stat status{};
  stat(directory.c_str(), &status);
  EXPECT_EQ(log.record(directory).inode, status.st_ino);
  EXPECT_EQ(log.record(directory).filesystem, 1u);
  EXPECT_GE(log.record("/self").filesystem, 1u);
  EXPECT_EQ(log.record("/self").kind, static_cast<std::uint64_t>(S_IFREG));
  EXPECT_GE(log.notes_with(R"({"note":"filesystem","id":1,"type":")"), 1u);
}

TEST_F(Records, OfPipesHaveNoFileSystem) {
  begin();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const FileFacts facts = facts_of(ends[0]);
  EXPECT_EQ(facts.kind, static_cast<std::uint64_t>(S_IFIFO));
  EXPECT_EQ(facts.filesystem, 0u);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Records, WriteTheirLayoutAsANote) {
  begin();
  const auto facts = [](void*) {
    FileFacts striped;
    auto* memory = reinterpret_cast<std::byte*>(base::map_memory(64 << 10));
    memory[0] = std::byte{0xD0};
    memory[1] = std::byte{0x0B};
    striped.layout = {"lustre.lov", memory, 2};
    return striped;
  };
  Record* record = find_record(Layer::posix, "/a", facts, nullptr);
  EXPECT_EQ(read_only_log(directory).notes_with(R"({"note":"layout","record":)" +
                                                std::to_string(index_of(record)) +
                                                R"(,"kind":"lustre.lov","value":"d00b"})"),
            1u);
}

}  // namespace
}  // namespace pario::trace
