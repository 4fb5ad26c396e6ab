// Room pattern: what the application asks, as bytes: where they lie in the file and in memory.
//
// A Layout is an MPI type map without types: nested repetitions and sequences of blocks, never expanded into a list of pieces. It is
// immutable and cheap to copy (shared). A Cursor walks it; an Access is one rank's request; the kernels copy between an access and a
// stretch of the file. Everything here is pure: no MPI, no system calls. Thread-safe where const.
//
// Text notation (tests, plan cases, logs): "8" is a block of 8 bytes; "4x8/16" four blocks of 8 bytes, 16 bytes apart; "3x(2x8/16)/100"
// nests; "[0:8 24:4x8/16]" is a sequence at the given displacements; "8@-8+32" has lower bound -8 and extent 32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.hpp"

namespace pario::pattern {

/// Stretches of a file begin on multiples of this (the last one may end anywhere).
inline constexpr std::uint64_t kMaxGranule = 4096;

namespace detail {
struct Node;
struct Inside;
}  // namespace detail

/// Bytes at displacements relative to an origin, in type map order, with a lower bound and an extent (MPI's meaning of both).
class Layout {
 public:
  Layout();                                 ///< no bytes, extent 0
  static Layout block(std::uint64_t size);  ///< contiguous, at displacement 0
  /// `count` copies, their origins `stride` bytes apart (may be negative or smaller than the extent).
  static Layout repeat(const Layout& of, std::uint64_t count, std::int64_t stride);
  /// Parts that have neither data nor bounds count for nothing.
  static Layout sequence(std::span<const std::pair<std::int64_t, Layout>> parts);
  /// The same as a sequence of repeats, `counts[i]` copies of `of` (an extent apart) at `displacements[i]`, without making a Layout for
  /// each; one count alone stands for all. Made for long lists: 8 bytes are kept per block, 16 when their lengths differ.
  static Layout indexed(const Layout& of, std::span<const std::int64_t> displacements, std::span<const std::uint64_t> counts);

  Layout resized(std::int64_t lower, std::int64_t extent) const;

  std::uint64_t size() const;  ///< bytes of data
  std::int64_t lower() const;  ///< lower bound
  std::int64_t extent() const;
  std::int64_t true_lower() const;   ///< displacement of the lowest byte of data
  std::int64_t true_extent() const;  ///< up to the highest one
  /// One run of bytes when tiled, which begins at displacement 0 (size == extent, in order).
  bool contiguous() const;
  /// Displacements never decrease in type map order: what MPI demands of file types.
  bool monotonic() const;
  /// Some bytes of one copy are named twice (not allowed in file types that are written). Costs a walk unless monotonic.
  bool overlapping() const;
  /// The largest power of two, at most kMaxGranule, that divides all displacements, lengths and strides (0: no data).
  std::uint64_t granule() const;
  /// Contiguous pieces in one copy, adjacent ones joined where they meet.
  std::uint64_t pieces() const;

  std::string text() const;
  static base::Result<Layout> parse(std::string_view text);
  /// Same bytes in the same order, same bounds.
  bool operator==(const Layout& other) const;

 private:
  friend struct detail::Inside;
  std::shared_ptr<const detail::Node> node_;  ///< null: no data; its first byte has displacement 0
  std::int64_t first_ = 0;                    ///< displacement of the first byte
  std::int64_t lower_ = 0, extent_ = 0;
};

/// A run of contiguous bytes: `offset` relative to the origin of the first copy.
struct Run {
  std::int64_t offset = 0;
  std::uint64_t length = 0;
};

/// Walks the data bytes of a Layout that is repeated without end (copy k has its origin at k * extent).
/// Positions count data bytes. Adjacent pieces are joined. O(depth) per seek, amortised O(1) per run.
class Cursor {
 public:
  Cursor(const Layout& layout, std::uint64_t position, std::uint64_t bytes);  ///< `bytes` data bytes from `position`
  /// The rest of the current run; length 0 at the end.
  Run current() const;
  /// Consumes `bytes` (at most current().length).
  void advance(std::uint64_t bytes);
  std::uint64_t position() const;
  std::uint64_t remaining() const;
  /// Monotonic layouts: skips forward to the first data byte at or after `offset`.
  void seek_offset(std::int64_t offset);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// MPI's file view: from `displacement` on the file is tiled with `filetype`; only its bytes are seen. Offsets count `etype_size` bytes of
/// data.
struct FileView {
  std::uint64_t displacement = 0;
  std::uint64_t etype_size = 1;
  Layout filetype = Layout::block(1);

  bool contiguous() const { return filetype.contiguous(); }
  /// Where in the file data byte number `position` of the view lies.
  std::uint64_t offset_of(std::uint64_t position) const;
  /// Number of data bytes of the view that lie before file offset `offset` (for seeking to the end, and for sizes).
  std::uint64_t position_of(std::uint64_t offset) const;
};

/// One rank's request: `bytes` data bytes, in memory `memory` tiled from `buffer`, in the file from data byte `position` of `view`.
struct Access {
  std::byte* buffer = nullptr;
  Layout memory = Layout::block(1);
  FileView view = {};
  std::uint64_t position = 0;
  std::uint64_t bytes = 0;
};

/// What others need to know of an access; a few words, to be sent around.
struct Summary {
  base::Extent span = {};  ///< from the first to the last byte touched
  std::uint64_t bytes = 0;
  std::uint64_t pieces = 0;   ///< contiguous runs in the file (exact where cheap, else an estimate from whole copies of the filetype)
  std::uint64_t granule = 0;  ///< a power of two, at most kMaxGranule: every run begins and ends on a multiple of it; 0: no data
  std::uint64_t memory_pieces = 0;
};
Summary summarise(const Access& access);

/// Bits over a stretch of a file, one per `granule` bytes: which bytes are covered. Owned by one writer; plain memory that may be shared.
/// bit i stands for [begin + i * granule, begin + (i + 1) * granule).
struct Coverage {
  std::uint64_t* words = nullptr;
  std::uint64_t granule = 1;
};
/// Words needed for `length` bytes.
std::uint64_t coverage_words(std::uint64_t length, std::uint64_t granule);

/// How bytes are stored. Memory that another processor reads next and that its cache still holds is written several times faster past
/// the caches where the two share none (measured: 2 GB/s and 27), and hardly slower where they do.
enum class Stores { cached, past_caches };
void copy_past_caches(std::byte* to, std::span<const std::byte> from);

/// Moves the pieces of an access that lie inside a stretch of the file to or from an image of that stretch. The walk is kept, so stretches
/// visited in ascending order cost nothing to find; any other order costs a seek. One walker per access and thread; copies share their
/// walk.
class Walker {
 public:
  explicit Walker(const Access& access);
  /// Copies this rank's bytes of `stretch` from the user's memory to `image` (image[0] is stretch.begin), marks them in `coverage` when
  /// that has words (its granule must divide the access's). Returns the bytes copied.
  std::uint64_t gather(base::Extent stretch, std::byte* image, Coverage coverage, Stores stores = Stores::cached);
  /// The other direction: from the image to the user's memory.
  std::uint64_t scatter(base::Extent stretch, const std::byte* image);
  /// Only marks what would be copied.
  std::uint64_t mark(base::Extent stretch, Coverage coverage);
  /// The next run of the file inside `stretch`, with the pieces of memory that it consists of (at most `room` of them); for direct vectored
  /// I/O. Empty extent: nothing left in the stretch. Consumes what it returns: called again with the same stretch it goes on, and stays
  /// empty at the end; another stretch, or any other call, begins anew. A run with more pieces than `room` comes in parts.
  base::Extent next(base::Extent stretch, std::span<std::span<std::byte>> memory, std::size_t& used);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Runs of set bits of the union of coverages of a stretch (all of one granule), ascending and joined.
class CoverageRuns {
 public:
  CoverageRuns(base::Extent stretch, std::span<const Coverage> coverages);
  /// The next run; empty: no more.
  base::Extent next();

 private:
  base::Extent stretch_;
  std::vector<Coverage> coverages_;
  std::uint64_t at_ = 0;
};

}  // namespace pario::pattern
