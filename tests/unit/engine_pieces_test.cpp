// Collective accesses given as pieces, on a file opened by its path and hints.
#include <cerrno>

#include "engine_support.hpp"

namespace pario::engine {
namespace {

constexpr std::uint64_t kPiece = 1000;
constexpr int kPieces = 5;

/// The pieces of a rank: every fourth piece of the file, in descending order.
std::vector<Piece> pieces_of(int rank, std::vector<std::byte>& memory) {
  std::vector<Piece> pieces;
  for (int i = kPieces; i-- > 0;)
    pieces.push_back({.offset = static_cast<std::uint64_t>(4 * i + rank) * kPiece,
                      .memory = std::span(memory).subspan(pieces.size() * kPiece, kPiece)});
  return pieces;
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

TEST(EnginePieces, AreWrittenAndReadInAnyOrder) {
  const Directory directory;
  const std::string path = directory / "pieces";
  with_path(path, [](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> written(kPieces * kPiece), read(written.size());
    const std::vector<Piece> pieces = pieces_of(ranks.rank(), written);
    for (const Piece& piece : pieces)
      std::ranges::copy(bytes_at(piece.offset, kPiece), piece.memory.begin());
    EXPECT_EQ(file.write_pieces(pieces).value(), written.size());
    EXPECT_EQ(file.read_pieces(pieces_of(ranks.rank(), read)).value(), read.size());
    EXPECT_EQ(read, written);
  });
  EXPECT_EQ(contents(path), bytes_at(0, 4 * kPieces * kPiece));
}

TEST(EnginePieces, MayBeMissingOnARank) {
  const Directory directory;
  const std::string path = directory / "few";
  with_path(path, [](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> bytes = bytes_at(0, kPiece);
    std::vector<Piece> pieces(1, {.offset = 0, .memory = {}});
    if (ranks.rank() == 2) pieces.push_back({.offset = 0, .memory = bytes});
    EXPECT_OK(file.write_pieces(pieces));
  });
  EXPECT_EQ(contents(path), bytes_at(0, kPiece));
}

TEST(EnginePieces, ThatOverlapAreAnErrorOnAllRanks) {
  const Directory directory;
  with_path(directory / "overlapping", [](SharedFile& file, comm::Comm& ranks) {
    std::vector<std::byte> bytes(kPiece);
    std::vector<Piece> pieces(1, {.offset = 0, .memory = bytes});
    if (ranks.rank() == 1) pieces.push_back({.offset = kPiece - 1, .memory = bytes});
    const auto written = file.write_pieces(pieces);
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().number, EINVAL);
    EXPECT_EQ(file.size().value(), 0u);
  });
}

}  // namespace
}  // namespace pario::engine
