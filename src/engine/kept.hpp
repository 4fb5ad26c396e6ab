// Bytes of writes that are kept back, to be written together.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pattern/pattern.hpp"

namespace pario::engine {

class Kept {
 public:
  /// Sorted and joined, as one access; owns its bytes.
  struct Batch {
    std::unique_ptr<std::byte[]> data = {};
    pattern::Access access = {};
  };

  /// Copies the bytes of a write with that span. Of bytes that are written twice the later ones count.
  void add(const pattern::Access& access, base::Extent span);
  /// All that has been added; nothing is kept afterwards.
  Batch take();

  bool empty() const { return runs_.empty(); }
  bool touches(base::Extent where) const;
  base::Extent hull() const { return hull_; }
  /// Memory that it takes, and that one more write would take.
  std::uint64_t size() const { return data_.size() + runs_.size() * sizeof(Run); }
  static std::uint64_t size_of(const pattern::Summary& write) { return write.bytes + write.pieces * sizeof(Run); }

 private:
  /// Some bytes of the file, which lie from `place` on in `data_`: the higher the later.
  struct Run {
    base::Extent where;
    std::uint64_t place;
  };
  using Runs = std::vector<Run>::iterator;

  void append(base::Extent where);
  Runs end_of_joined(Runs first, base::Extent& where);
  void paint(Runs first, Runs last, std::uint64_t begin, std::byte* image);

  std::vector<std::byte> data_;
  std::vector<Run> runs_;
  base::Extent hull_ = {};
};

}  // namespace pario::engine
