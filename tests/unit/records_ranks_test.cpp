// Shuffles and indexes by several ranks (threads): the output equals that of one rank, and an Error
// of one rank is an Error of all.
#include <gtest/gtest.h>

#include <barrier>
#include <random>
#include <thread>

#include "core/file/publication.hpp"
#include "data/records/buckets.hpp"
#include "records_support.hpp"

namespace pario::records {
namespace {

/// Exchanges texts among threads that act as ranks.
class Meeting {
 public:
  explicit Meeting(unsigned count) : given_(count), barrier_(count) {}
  Ranks seat(unsigned rank) {
    return {.rank = rank,
            .count = static_cast<unsigned>(given_.size()),
            .gather = [this, rank](const std::string& mine) {
              given_[rank] = mine;
              barrier_.arrive_and_wait();
              std::vector<std::string> all = given_;
              barrier_.arrive_and_wait();
              return base::Result<std::vector<std::string>>(std::move(all));
            }};
  }

 private:
  std::vector<std::string> given_;
  std::barrier<> barrier_;
};

using Work = std::function<std::string(Ranks seat, bool is_last)>;
/// Calls `work` in a thread for each rank; returns the results by rank.
std::vector<std::string> run_ranks(unsigned count, const Work& work) {
  Meeting meeting(count);
  std::vector<std::string> out(count);
  std::vector<std::jthread> threads;
  for (unsigned rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] { out[rank] = work(meeting.seat(rank), rank + 1 == count); });
  threads.clear();
  return out;
}

class RanksShuffle : public Records {
 protected:
  ShuffleRequest request(const std::string& input) const {
    return {.inputs = {input},
            .outputs = {file("out")},
            .seed = 7,
            .memory = std::uint64_t{4} << 30,
            .temporary = directory};
  }
  /// Returns the result of each rank; `change` modifies the request of the last one.
  static std::vector<std::string> outcomes(
      const ShuffleRequest& request, unsigned count,
      const std::function<void(ShuffleRequest&)>& change = {}) {
    return run_ranks(count, [&](Ranks seat, bool is_last) {
      ShuffleRequest mine = request;
      mine.ranks = std::move(seat);
      if (is_last && change) change(mine);
      const auto done = shuffle(mine);
      return done.ok() ? std::to_string(done->records) + " records" : done.error().text();
    });
  }
  static std::string join_files(const std::vector<std::string>& paths) {
    std::string out;
    for (const std::string& path : paths) out += bytes_of(path);
    return out;
  }
  std::string lines(int count, std::uint64_t longest) {
    std::string out;
    for (int i = 0; i < count; ++i)
      out += std::string(random_() % (longest + 1), static_cast<char>('a' + i % 26)) + "\n";
    return out;
  }
  ShufflePlan small_plan(Way way) {
    ShufflePlan plan{.way = way,
                     .buckets = static_cast<std::uint32_t>(1 + random_() % 9),
                     .threads = 2,
                     .chunk = 1 + random_() % 5000};
    plan.buffer = 4096;
    plan.inline_limit = way == Way::gather ? 0 : random_() % 2 == 0 ? 4096 - 64 : random_() % 300;
    plan.bucket_limit = 32'768;
    return plan;
  }

  std::mt19937_64 random_{1};
};

TEST_F(RanksShuffle, TheBytesAreThoseOfOne) {
  for (int round = 0; round < 24; ++round) {
    const int count = static_cast<int>(random_() % 800);
    ShuffleRequest asked = request(make("in.txt", lines(count, round % 2 == 0 ? 20 : 3000)));
    asked.outputs.clear();
    for (int shard = 0; shard < 1 + round % 5; ++shard)
      asked.outputs.push_back(file("out" + std::to_string(shard)));
    ASSERT_TRUE(shuffle(asked).ok());
    const std::string alone = join_files(asked.outputs);
    asked.plan = small_plan(round % 3 == 0 ? Way::gather : Way::buckets);
    asked.plan->direct = round % 4 == 0;
    const auto ranks = static_cast<unsigned>(1 + random_() % 4);
    const auto done = outcomes(asked, ranks);
    ASSERT_EQ(done, std::vector<std::string>(ranks, std::to_string(count) + " records")) << round;
    ASSERT_EQ(join_files(asked.outputs), alone) << round << ": " << ranks << " ranks";
    std::filesystem::remove(file("in.txt"));
    EXPECT_EQ(entries().size(), asked.outputs.size()) << "nothing else is left";
    for (const std::string& output : asked.outputs) std::filesystem::remove(output);
  }
}

TEST_F(RanksShuffle, ThePlanIsOneForAllAndNotInMemory) {
  const std::string path = make("in.txt", lines(5000, 50));
  ShuffleRequest asked = request(path);
  ASSERT_TRUE(shuffle(asked).ok());
  const std::string alone = bytes_of(file("out"));
  const auto done = outcomes(asked, 3, [](ShuffleRequest& last) { last.memory /= 8; });
  EXPECT_EQ(done, std::vector<std::string>(3, "5000 records"));
  EXPECT_EQ(bytes_of(file("out")), alone);
  asked.way = Way::memory;
  EXPECT_NE(outcomes(asked, 2)[1].find("not in memory"), std::string::npos);
}

TEST_F(RanksShuffle, PackedFilesGetTheirIndex) {
  std::filesystem::create_directory(file("tree"));
  for (int i = 0; i < 40; ++i) make("tree/" + std::to_string(i), lines(3, 3000));
  ASSERT_TRUE(pack({.directory = file("tree"), .output = file("in.prec")}).ok());
  ShuffleRequest asked = request(file("in.prec"));
  asked.kind = Kind::packed;
  ASSERT_TRUE(shuffle(asked).ok());
  const std::string alone = bytes_of(file("out"));
  EXPECT_EQ(outcomes(asked, 3), std::vector<std::string>(3, "40 records"));
  EXPECT_EQ(bytes_of(file("out")), alone);
}

TEST_F(RanksShuffle, AnErrorOfOneIsOneOfAllAndNothingIsLeft) {
  ShuffleRequest asked = request(make("in.txt", lines(1000, 50)));
  asked.plan = small_plan(Way::buckets);
  const std::string none = directory + "/none";
  const auto temporary = outcomes(asked, 3, [&](ShuffleRequest& last) { last.temporary = none; });
  const auto input = outcomes(asked, 3, [&](ShuffleRequest& last) { last.inputs = {none}; });
  for (const auto& told : {temporary, input})
    for (const std::string& text : told) {
      EXPECT_NE(text.find("ENOENT"), std::string::npos) << text;
      EXPECT_NE(text.find("rank 2"), std::string::npos) << text;
    }
  EXPECT_EQ(entries(), std::vector<std::string>{"in.txt"});
}

/// Returns the name of a rank's temporary file that is visible to all ranks.
std::string heap_name(std::string_view output, std::uint64_t rank, std::uint64_t number) {
  return heap_path("", output, rank, number).substr(1);
}

TEST_F(RanksShuffle, StaleFilesOfAKilledRunAreRemovedByTheNext) {
  const ShuffleRequest asked = request(make("in.txt", "a\nb\n"));
  const std::uint64_t number = file::random_part_number();
  const std::string other = file::part_path("other", number);
  const std::string text = heap_name("txt.out", 0, number);
  make(file::part_path("out", number), "half");
  make(heap_name("out", 12, number), "buckets");
  make(text, "of another output");
  make(other, "of another output");
  ASSERT_TRUE(shuffle(asked).ok());
  std::vector<std::string> left = {text, "in.txt", other, "out"};
  std::ranges::sort(left);
  EXPECT_EQ(entries(), left);
}

TEST_F(RanksShuffle, StaleFilesOfOutputsWithLongNamesAreRecognised) {
  const std::string output(250, 'o');
  const std::uint64_t number = file::random_part_number();
  EXPECT_TRUE(is_own_heap(heap_name(output, 1234567, number), output));
  EXPECT_FALSE(is_own_heap(heap_name(output, 1234567, number), output + "o"));
  EXPECT_LE(heap_name(output, 1234567, number).size(), 255U);
}

TEST_F(RanksShuffle, LinksInTheWayAreRemovedAndNotFollowed) {
  const ShuffleRequest asked = request(make("in.txt", "a\nb\n"));
  const std::string elsewhere = make("elsewhere", "precious");
  for (const std::string& name : {file::part_path("out", file::random_part_number()),
                                  heap_name("out", 0, file::random_part_number())})
    std::filesystem::create_symlink(elsewhere, file(name));
  ASSERT_TRUE(shuffle(asked).ok());
  EXPECT_EQ(entries(), (std::vector<std::string>{"elsewhere", "in.txt", "out"}));
  EXPECT_EQ(std::filesystem::file_size(elsewhere), 8);
}

TEST_F(RanksShuffle, AFileThatAnotherProcessWritesStays) {
  const ShuffleRequest asked = request(make("in.txt", "a\nb\n"));
  const std::uint64_t number = file::random_part_number();
  const auto used = file::Publication::of_file(file("out"), {.number = number});
  ASSERT_TRUE(used.ok());
  EXPECT_EQ(file::Publication::of_file(file("out"), {.number = number}).error().number, EEXIST);
  ASSERT_TRUE(shuffle(asked).ok());
  std::vector<std::string> left = {"in.txt", "out", file::part_path("out", number)};
  std::ranges::sort(left);
  EXPECT_EQ(entries(), left);
}

TEST_F(RanksShuffle, AFileThatAnotherHostMayWriteStays) {
  const ShuffleRequest asked = request(make("in.txt", "a\nb\n"));
  const std::uint64_t number = file::random_part_number() ^ std::uint64_t{1} << 40;
  const std::string part = file::part_path("out", number), buckets = heap_name("out", 0, number);
  make(part, "half");
  make(buckets, "buckets");
  ASSERT_TRUE(shuffle(asked).ok());
  std::vector<std::string> left = {buckets, "in.txt", "out", part};
  std::ranges::sort(left);
  EXPECT_EQ(entries(), left);
}

class RanksIndex : public RanksShuffle {
 protected:
  /// Indexes a file of lines by some ranks; returns the bytes of the index, or the Errors of the
  /// ranks. `change` modifies the request of the last one.
  std::string index_by_ranks(const std::string& path, unsigned count, bool update = false,
                             const std::function<void(IndexRequest&)>& change = {}) {
    const auto errors = run_ranks(count, [&](Ranks seat, bool is_last) {
      IndexRequest mine{.path = path, .threads = 2, .ranks = std::move(seat)};
      if (is_last && change) change(mine);
      const auto done = index_file(mine, update);
      return done.ok() ? std::string() : done.error().text() + "\n";
    });
    std::string all;
    for (const std::string& error : errors) all += error;
    return all.empty() ? bytes_of(index_path(path)) : all;
  }
};

TEST_F(RanksIndex, TheBytesAreThoseOfOne) {
  const std::string large(5 << 20, 'x');
  for (const std::string& content :
       {std::string(), std::string("\n"), std::string("a"), std::string("a\nb"),
        std::string("\n\n\n\n"), std::string("a\r\nbc\r\n\r\nd"), large,
        large + "\n" + large + "\nend", lines(3000, 90), lines(500, 90) + "no end"}) {
    const std::string path = make("in.txt", content);
    const std::string alone = index_by_ranks(path, 1);
    for (const unsigned count : {2, 3, 8}) EXPECT_EQ(index_by_ranks(path, count), alone) << count;
  }
}

TEST_F(RanksIndex, AnUpdateFindsTheAppendedLines) {
  for (const std::string& appended : {std::string(), std::string("x"), lines(400, 60)}) {
    const std::string before = lines(300, 60) + "no end";
    const std::string path = make("in.txt", before);
    index_by_ranks(path, 3);
    make("in.txt", before + appended);
    const std::string grown = index_by_ranks(path, 3, true);
    EXPECT_EQ(grown, index_by_ranks(path, 1));
  }
}

TEST_F(RanksIndex, AnErrorOfOneIsAnErrorOfAll) {
  const std::string path = make("in.txt", lines(300, 60));
  const std::string errors = index_by_ranks(
      path, 3, false, [&](IndexRequest& request) { request.path = file("missing"); });
  EXPECT_EQ(std::ranges::count(errors, '\n'), 3) << errors;
  EXPECT_NE(errors.find("missing"), std::string::npos) << errors;
  const std::string index = index_by_ranks(path, 3);
  make("in.txt", lines(10, 60));
  const std::string changed = index_by_ranks(path, 3, true);
  EXPECT_EQ(std::ranges::count(changed, '\n'), 3) << changed;
  EXPECT_EQ(bytes_of(index_path(path)), index);
}

}  // namespace
}  // namespace pario::records
