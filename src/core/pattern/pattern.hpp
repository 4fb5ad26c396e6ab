// Module pattern: the bytes of an access, in the file and in memory.
//
// A TypeMap is an MPI type map without types: nested repetitions and sequences of blocks, never
// expanded into a list of pieces. It is immutable and cheap to copy (shared). A Cursor walks it; an
// Access is the request of one rank; a Walker copies between an access and a window of the file.
// All functions are pure: no MPI, no system calls. Thread-safe where const.
//
// Text notation (tests, plan cases, logs): "8" is a block of 8 bytes; "4x8/16" four blocks of 8
// bytes, 16 bytes apart; "3x(2x8/16)/100" nests; "[0:8 24:4x8/16]" is a sequence at the given
// displacements; "8@-8+32" has lower bound -8 and extent 32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/base.hpp"

namespace pario::pattern {

/// Windows of a file begin at multiples of this (the last one may end anywhere).
inline constexpr std::uint64_t kMaxGranule = 4096;

namespace detail {
struct Node;
struct Inside;
}  // namespace detail

/// Bytes at displacements relative to an origin, in type map order, with a lower bound and an
/// extent (MPI's meaning of both).
class TypeMap {
 public:
  TypeMap();                                 ///< no bytes, extent 0
  static TypeMap block(std::uint64_t size);  ///< contiguous, at displacement 0
  /// Returns `count` copies with origins `stride` bytes apart (may be negative or smaller than the
  /// extent).
  static TypeMap repeat(const TypeMap& of, std::uint64_t count, std::int64_t stride);
  /// Returns a sequence. Ignores parts without data and bounds.
  static TypeMap sequence(std::span<const std::pair<std::int64_t, TypeMap>> parts);
  /// Returns a sequence of repeats, `counts[i]` copies of `of` (an extent apart) at
  /// `displacements[i]`, without a TypeMap for each; a single count applies to all. For long lists:
  /// 8 bytes per block, 16 if their lengths differ.
  static TypeMap make_indexed(const TypeMap& of, std::span<const std::int64_t> displacements,
                              std::span<const std::uint64_t> counts);

  TypeMap with_extent(std::int64_t lower, std::int64_t extent) const;

  std::uint64_t size() const;  ///< bytes of data
  std::int64_t lower() const;  ///< lower bound
  std::int64_t extent() const;
  std::int64_t true_lower() const;   ///< displacement of the lowest byte of data
  std::int64_t true_extent() const;  ///< from the lowest to the highest byte of data
  /// True if tiling makes one run of bytes from displacement 0 on (size == extent, in order).
  bool contiguous() const;
  /// True if displacements never decrease in type map order: MPI requires it of file types.
  bool monotonic() const;
  /// True if a byte of one copy occurs twice (not allowed in file types that are written). Costs a
  /// walk unless monotonic.
  bool overlapping() const;
  /// Returns the largest power of two, at most kMaxGranule, that divides all displacements, lengths
  /// and strides (0: no data).
  std::uint64_t granule() const;
  /// Returns the number of contiguous pieces in one copy; adjacent ones are joined.
  std::uint64_t pieces() const;

  /// Returns the text notation; empty if it has more than `limit` characters.
  std::string text(std::size_t limit = SIZE_MAX) const;
  static base::Result<TypeMap> parse(std::string_view text);
  /// True for the same bytes in the same order and the same bounds.
  bool operator==(const TypeMap& other) const;

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

/// Walks the data bytes of an endlessly repeated TypeMap (copy k has its origin at k * extent).
/// Positions count data bytes. Adjacent pieces are joined. O(depth) per seek, amortised O(1) per
/// run.
class Cursor {
 public:
  Cursor(const TypeMap& layout, std::uint64_t position,
         std::uint64_t bytes);  ///< `bytes` data bytes from `position`
  /// Returns the rest of the current run; length 0 at the end.
  Run current() const;
  /// Consumes `bytes` (at most current().length).
  void advance(std::uint64_t bytes);
  std::uint64_t position() const;
  std::uint64_t remaining() const;
  /// Skips forward to the first data byte at or after `offset`, in monotonic layouts.
  void seek_offset(std::int64_t offset);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// MPI's file view: the file from `displacement` on, tiled with `filetype`; only its bytes are
/// visible. Offsets count `etype_size` bytes of data.
struct FileView {
  std::uint64_t displacement = 0;
  std::uint64_t etype_size = 1;
  TypeMap filetype = TypeMap::block(1);

  bool contiguous() const { return filetype.contiguous(); }
  /// Returns the run of the file with the data bytes [position, position + bytes), in a few steps.
  /// Empty: they are not one run, or not known to be, or lie behind the largest file.
  base::Extent find_run(std::uint64_t position, std::uint64_t bytes) const;
  /// Returns the file offset of data byte `position` of the view.
  std::uint64_t offset_of(std::uint64_t position) const;
  /// Returns the number of data bytes of the view before file offset `offset` (for seeking to the
  /// end, and for sizes).
  std::uint64_t position_of(std::uint64_t offset) const;
};

/// The request of one rank: `bytes` data bytes, in memory in `memory` tiled from `buffer` on, in
/// the file from data byte `position` of `view` on.
struct Access {
  std::byte* buffer = nullptr;
  TypeMap memory = TypeMap::block(1);
  FileView view = {};
  std::uint64_t position = 0;
  std::uint64_t bytes = 0;
};

/// The summary of an access for other ranks; a few words.
struct Summary {
  base::Extent span = {};  ///< from the first to the last byte touched
  std::uint64_t bytes = 0;
  /// Contiguous runs in the file: exact where cheap, else estimated from whole copies of the
  /// filetype.
  std::uint64_t pieces = 0;
  /// A power of two, at most kMaxGranule, of which all begins and ends of runs are multiples; 0: no
  /// data.
  std::uint64_t granule = 0;
  std::uint64_t memory_pieces = 0;
};
Summary summarise(const Access& access);

/// A bit for each `granule` bytes of a window of a file: the covered bytes. Bit i stands for [begin
/// + i * granule, begin + (i + 1) * granule). One writer; plain memory that may be shared.
struct Coverage {
  std::uint64_t* words = nullptr;
  std::uint64_t granule = 1;
};
/// Returns the number of words for `length` bytes.
std::uint64_t coverage_words(std::uint64_t length, std::uint64_t granule);

/// The kind of stores. Use non-temporal stores (past_caches) if the core that reads the memory next
/// shares no cache with this one: 27 GB/s instead of 2 (measured); they are hardly slower if it
/// shares one.
enum class Stores { cached, past_caches };
void copy_past_caches(std::byte* to, std::span<const std::byte> from);

/// Copies the pieces of an access inside a window of the file to or from an image of that window.
/// The walker keeps its position, so windows in ascending order cost no search; any other order
/// costs a seek. One walker per access and thread; copies share their position.
class Walker {
 public:
  explicit Walker(const Access& access);
  /// Copies the bytes of `range` from the user's memory to `image` (image[0] is range.begin), and
  /// marks them in `coverage` if that has words (its granule must divide that of the access).
  /// Returns the number of bytes.
  std::uint64_t gather(base::Extent range, std::byte* image, Coverage coverage,
                       Stores stores = Stores::cached);
  /// Copies from the image to the user's memory.
  std::uint64_t scatter(base::Extent range, const std::byte* image);
  /// Marks the bytes without copying.
  std::uint64_t mark(base::Extent range, Coverage coverage);
  /// Returns the next run of the file inside `range`, with its pieces of memory (`used` of them, at
  /// most memory.size()), for direct vectored I/O; an empty extent at the end. Consumes the run: a
  /// call with the same range continues; another range, or any other call, starts again. A run with
  /// more pieces than `memory` holds is returned in parts.
  base::Extent next(base::Extent range, std::span<std::span<std::byte>> memory, std::size_t& used);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Iterates over the runs of set bits in the union of several coverages of a window (with one
/// granule), ascending and joined.
class CoverageRuns {
 public:
  CoverageRuns(base::Extent range, std::span<const Coverage> coverages);
  /// Returns the next run; empty at the end.
  base::Extent next();

 private:
  base::Extent stretch_;
  std::vector<Coverage> coverages_;
  std::uint64_t at_ = 0;
};

}  // namespace pario::pattern
