// Compressed temporary files: the bytes read back, and their size.
#include "data/records/compressed.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "records_support.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kPiece = 64 << 10;

class Compressed : public Records {
 protected:
  void SetUp() override {
    auto heap = make_compressed_heap(std::move(*make_memory_heap(2 * kPiece)));
    if (!heap.ok()) {
      ASSERT_EQ(heap.error().number, ENOENT);
      GTEST_SKIP() << heap.error().text();
    }
    heap_ = std::move(*heap);
  }
  static Buffer piece_of(const std::string& text) {
    Buffer piece = std::move(*Buffer::make(kPiece));
    for (std::uint64_t i = 0; i < kPiece; ++i)
      piece.data()[i] = static_cast<std::byte>(text[i % text.size()]);
    return piece;
  }
  std::string got(std::uint64_t where) {
    const Buffer back = std::move(*Buffer::make(kPiece));
    const base::Status status = heap_->get(where, back.span());
    return status ? std::string(reinterpret_cast<const char*>(back.data()), kPiece)
                  : status.error().text();
  }
  static std::string text_of(const Buffer& piece) {
    return {reinterpret_cast<const char*>(piece.data()), kPiece};
  }

  std::unique_ptr<Heap> heap_;
};

TEST_F(Compressed, MoreComesBackThanThereWasRoomFor) {
  std::vector<Buffer> pieces;
  std::vector<std::uint64_t> places;
  for (int i = 0; i < 16; ++i) {
    pieces.push_back(piece_of("line " + std::to_string(i) + "\n"));
    const auto where = heap_->put(pieces.back().span());
    ASSERT_TRUE(where.ok()) << where.error().text();
    places.push_back(*where);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i)
    EXPECT_EQ(got(places[i]), text_of(pieces[i])) << i;
}

TEST_F(Compressed, WhatDoesNotBecomeSmallerStaysAsItIs) {
  std::mt19937_64 random(1);
  std::string noise(kPiece, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  const Buffer piece = piece_of(noise);
  const auto first = heap_->put(piece.span()), second = heap_->put(piece.span());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(got(*first), noise);
  EXPECT_EQ(got(*second), noise);
  EXPECT_FALSE(heap_->put(piece.span()).ok()) << "there is room for two";
}

TEST_F(Compressed, AShuffleThroughItIsTheSame) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "this is line " + std::to_string(i) + "\n";
  ShuffleRequest asked{.inputs = {make("in.txt", text)},
                       .outputs = {file("out")},
                       .seed = 7,
                       .memory = 1 << 30,
                       .temporary = directory};
  ASSERT_TRUE(shuffle(asked).ok());
  const std::string expected = bytes_of(file("out"));
  asked.compress = true;
  for (const std::uint64_t limit :
       {std::uint64_t{65'536}, ~std::uint64_t{0}}) {  // divided again, and not
    asked.plan = ShufflePlan{.way = Way::buckets,
                             .buckets = 3,
                             .threads = 3,
                             .chunk = 5000,
                             .buffer = 16'384,
                             .inline_limit = 16'000,
                             .bucket_limit = limit};
    const auto done = shuffle(asked);
    ASSERT_TRUE(done.ok()) << done.error().text();
    EXPECT_EQ(bytes_of(file("out")), expected);
  }
}

}  // namespace
}  // namespace pario::records
