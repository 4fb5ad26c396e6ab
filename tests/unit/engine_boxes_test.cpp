// Collective accesses given as boxes of arrays, on a file opened by its path and hints.
#include <cerrno>

#include "engine_support.hpp"
#include "parallel/engine/boxes.hpp"

namespace pario::engine {
namespace {

constexpr std::uint64_t kPlace = 100, kElement = 8;
using Shape = std::vector<std::uint64_t>;
const Shape kWhole = {6, 4, 10};
constexpr std::uint64_t kPlane = 4 * 10 * kElement;

/// A box of the array and the memory of its elements, in C order or with its axes reversed.
struct BoxInMemory {
  BoxInMemory(const Shape& begin, const Shape& shape, bool reversed = false)
      : memory(shape[0] * shape[1] * shape[2] * kElement) {
    box = {.place = kPlace, .element = kElement, .whole = kWhole, .begin = begin, .shape = shape};
    box.memory = memory.data();
    box.strides.resize(3);
    std::int64_t stride = kElement;
    for (std::size_t i = 0; i < 3; i++) {
      const std::size_t axis = reversed ? i : 2 - i;
      box.strides[axis] = stride;
      stride *= static_cast<std::int64_t>(shape[axis]);
    }
  }

  /// Calls `work` with the offset in the file and the memory of each element.
  void for_each(const std::function<void(std::uint64_t offset, std::byte* memory)>& work) {
    for (std::uint64_t i = 0; i < box.shape[0]; i++)
      for (std::uint64_t j = 0; j < box.shape[1]; j++)
        for (std::uint64_t k = 0; k < box.shape[2]; k++) {
          const std::uint64_t element =
              ((box.begin[0] + i) * kWhole[1] + box.begin[1] + j) * kWhole[2] + box.begin[2] + k;
          work(kPlace + element * kElement, box.memory +
                                                static_cast<std::int64_t>(i) * box.strides[0] +
                                                static_cast<std::int64_t>(j) * box.strides[1] +
                                                static_cast<std::int64_t>(k) * box.strides[2]);
        }
  }
  void fill() {
    for_each([](std::uint64_t offset, std::byte* to) {
      std::ranges::copy(bytes_at(offset, kElement), to);
    });
  }
  void expect_filled() {
    for_each([](std::uint64_t offset, const std::byte* found) {
      EXPECT_EQ(bytes_at(offset, kElement), std::vector(found, found + kElement)) << offset;
    });
  }

  std::vector<std::byte> memory;
  Box box;
};

std::vector<Box> boxes_of(std::vector<BoxInMemory>& all) {
  std::vector<Box> boxes;
  for (BoxInMemory& one : all) boxes.push_back(one.box);
  return boxes;
}

/// Two boxes of a rank, whose rows lie between each other in the file, one with reversed axes.
std::vector<BoxInMemory> interleaved_boxes(int rank) {
  const auto plane = static_cast<std::uint64_t>(rank);
  std::vector<BoxInMemory> all;
  all.emplace_back(Shape{plane, 0, 6}, Shape{1, 4, 4}, true);
  all.emplace_back(Shape{plane, 0, 0}, Shape{1, 4, 6});
  return all;
}

/// Opens `path` on all ranks and calls `body`.
void with_path(const std::string& path,
               const std::function<void(SharedFile& file, comm::Comm& ranks)>& body) {
  comm::run_as_threads(kFour, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file = SharedFile::open(ranks, path, hints::default_file_hints());
    ASSERT_TRUE(file.ok()) << file.error().text();
    body(**file, *ranks);
    EXPECT_OK((*file)->close());
  });
}

TEST(EngineBoxes, AreWrittenAndReadInAnyOrder) {
  const Directory directory;
  const std::string path = directory / "boxes";
  with_path(path, [](SharedFile& file, comm::Comm& ranks) {
    std::vector<BoxInMemory> written = interleaved_boxes(ranks.rank());
    for (BoxInMemory& one : written) one.fill();
    EXPECT_EQ(file.write_boxes(boxes_of(written)).value(), kPlane);
    std::vector<BoxInMemory> read = interleaved_boxes(3 - ranks.rank());
    EXPECT_EQ(file.read_boxes(boxes_of(read)).value(), kPlane);
    for (BoxInMemory& one : read) one.expect_filled();
  });
  const std::vector<std::byte> found = contents(path);
  ASSERT_EQ(found.size(), kPlace + 4 * kPlane);
  EXPECT_EQ(std::vector(found.begin() + kPlace, found.end()), bytes_at(kPlace, 4 * kPlane));
}

TEST(EngineBoxes, ThatOverlapAreRead) {
  const Directory directory;
  with_path(directory / "overlapping", [](SharedFile& file, comm::Comm& ranks) {
    std::vector<BoxInMemory> all;
    if (ranks.rank() == 0) all.emplace_back(Shape{0, 0, 0}, kWhole);
    for (BoxInMemory& one : all) one.fill();
    EXPECT_OK(file.write_boxes(boxes_of(all)));
    std::vector<BoxInMemory> read;
    read.emplace_back(Shape{1, 1, 1}, Shape{3, 2, 8});
    read.emplace_back(Shape{0, 0, 0}, Shape{4, 4, 5}, true);
    read.emplace_back(Shape{1, 1, 1}, Shape{3, 2, 8});
    EXPECT_OK(file.read_boxes(boxes_of(read)));
    for (BoxInMemory& one : read) one.expect_filled();
  });
}

TEST(EngineBoxes, MayBeMissingOrEmptyOnARank) {
  const Directory directory;
  const std::string path = directory / "few";
  with_path(path, [](SharedFile& file, comm::Comm& ranks) {
    std::vector<BoxInMemory> all;
    if (ranks.rank() > 1) all.emplace_back(Shape{0, 0, 0}, Shape{6, 0, 10});
    if (ranks.rank() == 2) all.emplace_back(Shape{5, 3, 9}, Shape{1, 1, 1});
    for (BoxInMemory& one : all) one.fill();
    EXPECT_OK(file.write_boxes(boxes_of(all)));
  });
  EXPECT_EQ(contents(path).size(), kPlace + 6 * 4 * 10 * kElement);
}

TEST(EngineBoxes, ThatOverlapAreNotWrittenOnAnyRank) {
  const Directory directory;
  with_path(directory / "overlapping", [](SharedFile& file, comm::Comm& ranks) {
    std::vector<BoxInMemory> all;
    all.emplace_back(Shape{static_cast<std::uint64_t>(ranks.rank()), 0, 0}, Shape{1, 4, 6});
    if (ranks.rank() == 1) all.emplace_back(Shape{1, 3, 5}, Shape{1, 1, 1});
    const auto written = file.write_boxes(boxes_of(all));
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().number, EINVAL);
    EXPECT_EQ(file.size().value(), 0u);
  });
}

TEST(EngineBoxes, BecomeOneLayoutWithoutRuns) {
  std::vector<BoxInMemory> all;
  all.emplace_back(Shape{1, 0, 2}, Shape{2, 3, 3});
  const auto access = access_of_boxes(boxes_of(all), plan::Direction::write);
  ASSERT_TRUE(access.ok());
  EXPECT_EQ(access->view.filetype.text(), "2x(3x24/80)/320");
  EXPECT_EQ(access->view.displacement, kPlace + (1 * 4 * 10 + 2) * kElement);
  EXPECT_EQ(access->memory.text(), "144");
}

}  // namespace
}  // namespace pario::engine
