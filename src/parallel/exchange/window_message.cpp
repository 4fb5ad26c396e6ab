#include "parallel/exchange/window_message.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace pario::exchange {
namespace {

struct MessageHeader {
  std::uint64_t length = 0;  ///< of all runs
  std::uint64_t pairs = 0;   ///< number of runs, if sent as pairs
  std::uint64_t bitmap = 0;  ///< words, if sent as a bitmap
};
using Pair = std::array<std::uint32_t, 2>;

MessageHeader measure(base::Extent extent, std::span<const pattern::Coverage> coverages,
                      std::uint64_t granule) {
  MessageHeader header;
  pattern::CoverageRuns runs(extent, coverages);
  for (base::Extent run = runs.next(); !run.empty(); run = runs.next()) {
    header.length += run.length();
    ++header.pairs;
  }
  const std::uint64_t words = pattern::coverage_words(extent.length(), granule);
  if (header.pairs > words) {
    header.bitmap = words;
    header.pairs = 0;
  }
  return header;
}

void put_bitmap(std::byte* to, const MessageHeader& header,
                std::span<const pattern::Coverage> coverages) {
  for (std::uint64_t word = 0; word < header.bitmap; ++word) {
    std::uint64_t bits = 0;
    for (const pattern::Coverage& coverage : coverages) bits |= coverage.words[word];
    std::memcpy(to + word * sizeof bits, &bits, sizeof bits);
  }
}

}  // namespace

void set_bits(pattern::Coverage coverage, base::Extent extent, base::Extent run) {
  std::uint64_t bit = (run.begin - extent.begin) / coverage.granule;
  const std::uint64_t end = (run.end - extent.begin + coverage.granule - 1) / coverage.granule;
  while (bit < end) {
    const std::uint64_t in_word = std::min(end - bit, 64 - bit % 64);
    coverage.words[bit / 64] |=
        (in_word == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << in_word) - 1) << bit % 64;
    bit += in_word;
  }
}

std::uint64_t message_limit(std::uint64_t length, std::uint64_t granule) {
  return sizeof(MessageHeader) + pattern::coverage_words(length, granule) * sizeof(std::uint64_t);
}

Buffer pack_window_message(Buffers& buffers, base::Extent extent,
                           std::span<const pattern::Coverage> coverages, std::uint64_t granule,
                           const std::byte* image) {
  const MessageHeader header = measure(extent, coverages, granule);
  const std::size_t runs_size = header.pairs * sizeof(Pair) + header.bitmap * sizeof(std::uint64_t);
  Buffer buffer = buffers.get(sizeof header + runs_size + (image ? header.length : 0));
  std::memcpy(buffer.data.get(), &header, sizeof header);
  std::byte* runs_at = buffer.data.get() + sizeof header;
  std::byte* bytes_at = runs_at + runs_size;
  if (header.bitmap > 0) put_bitmap(runs_at, header, coverages);
  if (header.bitmap > 0 && !image) return buffer;
  pattern::CoverageRuns runs(extent, coverages);
  for (base::Extent run = runs.next(); !run.empty(); run = runs.next()) {
    if (header.bitmap == 0) {
      const Pair pair{static_cast<std::uint32_t>((run.begin - extent.begin) / granule),
                      static_cast<std::uint32_t>((run.end - extent.begin + granule - 1) / granule)};
      std::memcpy(runs_at, &pair, sizeof pair);
      runs_at += sizeof pair;
    }
    if (!image) continue;
    std::memcpy(bytes_at, image + (run.begin - extent.begin), run.length());
    bytes_at += run.length();
  }
  return buffer;
}

WindowMessage::WindowMessage(std::span<const std::byte> message, base::Extent extent,
                             std::uint64_t granule)
    : stretch_(extent), granule_(granule) {
  MessageHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  length_ = header.length;
  pairs_ = header.pairs;
  runs_ = message.data() + sizeof header;
  bytes_ = runs_ + header.pairs * sizeof(Pair) + header.bitmap * sizeof(std::uint64_t);
  if (header.bitmap == 0) return;
  // Buffers are aligned for words, and so are the bytes after the header. Coverage is not const,
  // but here it is only read.
  const pattern::Coverage coverage{
      const_cast<std::uint64_t*>(reinterpret_cast<const std::uint64_t*>(runs_)), granule};
  bitmap_.emplace(extent, std::span(&coverage, 1));
}

std::optional<base::Extent> WindowMessage::next() {
  if (bitmap_) {
    const base::Extent run = bitmap_->next();
    return run.empty() ? std::nullopt : std::optional(run);
  }
  if (at_ == pairs_) return {};
  Pair pair;
  std::memcpy(&pair, runs_ + at_++ * sizeof pair, sizeof pair);
  return base::Extent{stretch_.begin + pair[0] * granule_,
                      std::min(stretch_.begin + pair[1] * granule_, stretch_.end)};
}

}  // namespace pario::exchange
