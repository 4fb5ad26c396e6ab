// The bytes of kept writes, collected to be written together.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/pattern/pattern.hpp"

namespace pario::engine {

/// The layout of runs of a file, relative to the first byte.
struct RunLayout {
  std::uint64_t origin = 0;
  std::uint64_t bytes = 0;
  pattern::TypeMap layout = {};
};
/// Describes at least one run, in the order of the file.
RunLayout describe_runs(const std::vector<base::Extent>& runs);

/// Copies of written bytes and their runs. Not thread-safe.
class KeptBytes {
 public:
  /// All bytes, sorted and joined, as one access; owns the bytes.
  struct Batch {
    std::unique_ptr<std::byte[]> data = {};
    pattern::Access access = {};
  };

  /// Copies the bytes of a write, whose span is `span`. Later bytes replace earlier ones at the
  /// same place.
  void add(const pattern::Access& access, base::Extent span);
  /// Removes and returns all bytes.
  Batch take_batch();

  bool empty() const { return runs_.empty(); }
  bool overlaps(base::Extent where) const;
  base::Extent hull() const { return hull_; }
  /// Bytes of memory in use, and the bytes that one more write would need.
  std::uint64_t memory() const { return data_.size() + runs_.size() * sizeof(Run); }
  static std::uint64_t memory_for(const pattern::Summary& write) {
    return write.bytes + write.pieces * sizeof(Run);
  }

 private:
  /// A run of the file; its bytes are at `place` in `data_`. Runs of higher places are later.
  struct Run {
    base::Extent where;
    std::uint64_t place;
  };
  using Runs = std::vector<Run>::iterator;

  void append_run(base::Extent where);
  Runs find_end_of_joined(Runs first, base::Extent& joined);
  void copy_in_order(Runs first, Runs last, std::uint64_t begin, std::byte* image);

  std::vector<std::byte> data_;
  std::vector<Run> runs_;
  base::Extent hull_ = {};
};

}  // namespace pario::engine
