// Random views and memory, compared with a model that is an array of bytes.
#include "engine_support.hpp"
#include "pattern_model.hpp"

namespace pario::engine {
namespace {

/// The calls of one rank in one round.
struct Part {
  pattern::Sample memory, filetype;
  std::uint64_t displacement, position, bytes;

  std::uint64_t in_file(std::uint64_t i) const {
    return displacement + static_cast<std::uint64_t>(filetype.model.at(position + i));
  }
  std::uint64_t in_memory(std::uint64_t i) const {
    return static_cast<std::uint64_t>(memory.model.at(i));
  }
  std::uint64_t memory_size() const { return bytes == 0 ? 0 : in_memory(bytes - 1) + 1; }
  pattern::Access access(std::vector<std::byte>& buffer) const {
    return {.buffer = buffer.data(),
            .memory = memory.layout,
            .view = {.displacement = displacement, .etype_size = 1, .filetype = filetype.layout},
            .position = position,
            .bytes = bytes};
  }
};

/// Ascending layouts that ranks take in turn, so that they interleave and never overlap.
Part part_of(pattern::Random& random, int rank, int ranks, const pattern::Sample& tile) {
  pattern::Sample type = tile;
  const std::int64_t extent = tile.model.extent;
  type.model.extent = extent * ranks;
  type.layout = tile.layout.with_extent(tile.model.lower, extent * ranks);
  pattern::Sample memory = random.ascending(2, 1);
  while (memory.model.bytes.empty()) memory = random.ascending(2, 1);
  const std::uint64_t bytes = random.one_in(6) ? 0 : random.upto(3000);
  return {memory, type, static_cast<std::uint64_t>(extent * rank), random.upto(40), bytes};
}

struct Round {
  std::vector<Part> parts;
  With with;
};

Round round_of(pattern::Random& random, int ranks) {
  pattern::Sample tile = random.ascending(3, 1);
  while (tile.model.bytes.empty() ||
         tile.model.extent < tile.model.bytes.back() + 1 - tile.model.bytes.front())
    tile = random.ascending(3, 1);
  Round round{{}, random.one_in(3) ? With::alone : With::together};
  for (int rank = 0; rank < ranks; ++rank)
    round.parts.push_back(part_of(random, rank, ranks, tile));
  return round;
}

hints::FileHints hints_of(pattern::Random& random) {
  const auto choice = [&] { return static_cast<hints::Choice>(random.upto(2)); };
  hints::FileHints hints = hints::default_file_hints();
  hints.romio_cb_write = choice();
  hints.romio_cb_read = choice();
  hints.romio_ds_read = choice();
  hints.romio_ds_write = choice();
  hints.cb_buffer_size = 4096 << random.upto(3);
  hints.ind_rd_buffer_size = hints.ind_wr_buffer_size = 4096;
  hints.pario_buffers = 2 + random.upto(2);
  return hints;
}

void write_model(std::vector<std::byte>& model, const Part& part,
                 const std::vector<std::byte>& memory) {
  if (part.bytes > 0)
    model.resize(std::max<std::size_t>(model.size(), part.in_file(part.bytes - 1) + 1));
  for (std::uint64_t i = 0; i < part.bytes; ++i) model[part.in_file(i)] = memory[part.in_memory(i)];
}

std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t size) {
  std::mt19937_64 engine(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(engine());
  return bytes;
}

void play_random(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  pattern::Random random(seed);
  const auto all_shapes = shapes();
  const std::vector<int> shape = all_shapes[random.upto(all_shapes.size() - 1)];
  const int ranks_count = static_cast<int>(shape.size());
  std::vector<Round> rounds;
  for (int i = 0; i < 3; ++i) rounds.push_back(round_of(random, ranks_count));
  const Directory directory;
  OpenRequest request = fresh(directory / "random");
  request.hints = hints_of(random);
  std::vector<std::byte> model;
  for (std::size_t number = 0; number < rounds.size(); ++number)
    for (const Part& part : rounds[number].parts)
      write_model(model, part, random_bytes(seed + number, part.memory_size()));
  with_file(shape, request, [&](SharedFile& file, comm::Comm& ranks) {
    for (std::size_t number = 0; number < rounds.size(); ++number) {
      const Part& part = rounds[number].parts[static_cast<std::size_t>(ranks.rank())];
      std::vector<std::byte> memory = random_bytes(seed + number, part.memory_size());
      EXPECT_OK(file.write(part.access(memory), rounds[number].with, "write"));
      EXPECT_OK(file.agree(0, {}, "agree"));
    }
    for (const Round& round : rounds) {
      const Part& part = round.parts[static_cast<std::size_t>(ranks.rank())];
      std::vector<std::byte> memory(part.memory_size(), std::byte{3}), expected = memory;
      for (std::uint64_t i = 0; i < part.bytes; ++i)
        expected[part.in_memory(i)] = model[part.in_file(i)];
      const auto read = file.read(part.access(memory), round.with, "read");
      ASSERT_TRUE(read.ok()) << read.error().text();
      EXPECT_EQ(*read, part.bytes);
      EXPECT_EQ(memory, expected);
    }
  });
  EXPECT_EQ(contents(request.path), model);
}

TEST(EngineRandom, AgreesWithAModelOfBytes) {
  const std::uint64_t seed = pattern::first_seed(), cases = pattern::cases(60);
  for (std::uint64_t i = 0; i < cases && !HasFailure(); ++i) play_random(seed + i);
}

}  // namespace
}  // namespace pario::engine
