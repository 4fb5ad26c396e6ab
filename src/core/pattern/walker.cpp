#include <bit>

#include "core/pattern/copy.hpp"
#include "core/pattern/coverage.hpp"
#include "core/pattern/walk.hpp"

namespace pario::pattern {

using base::Extent;
using detail::Steps;
using detail::Walk;

namespace {

Walk walk_over(const TypeMap& layout, std::uint64_t displacement, std::uint64_t position,
               std::uint64_t bytes) {
  const detail::Tiling tiling = detail::tile(layout, position, bytes);
  const std::int64_t origin = detail::plus(tiling.origin, static_cast<std::int64_t>(displacement));
  return {tiling.tree, origin, tiling.begin, tiling.begin + bytes};
}

/// The unit of copying: `count` pieces of `unit` bytes.
struct Batch {
  std::uint64_t offset = 0;  ///< in the file, of the first piece
  std::byte* memory = nullptr;
  std::uint64_t unit = 0, count = 0;
  std::int64_t file_stride = 0, memory_stride = 0;
};

}  // namespace

struct Walker::State {
  explicit State(const Access& access)
      : buffer(reinterpret_cast<std::uintptr_t>(access.buffer)),
        file(walk_over(access.view.filetype, access.view.displacement, access.position,
                       access.bytes)),
        memory(walk_over(access.memory, 0, 0, access.bytes)),
        start(file.position()),
        skips(!file.is_ordered()) {}

  /// Moves to the first piece at or after the begin of the window.
  void enter(Extent range) {
    const bool ahead = range.begin >= reached && (file.at_end() || offset() >= range.begin);
    if (skips) {
      file.seek(start);
    } else if (range.begin != reached && !ahead) {
      file.seek_offset(static_cast<std::int64_t>(range.begin));
    }
    reached = range.begin;
  }
  void leave(Extent range) {
    reached = range.end;
    taken_from = {};
  }

  std::uint64_t offset() const { return static_cast<std::uint64_t>(file.at()); }
  std::byte* memory_at(std::int64_t displacement) const {
    return reinterpret_cast<std::byte*>(buffer + static_cast<std::uintptr_t>(displacement));
  }
  std::byte* memory_at() const { return memory_at(memory.at()); }

  /// Moves to a byte of the window; false at its end.
  bool find(Extent range) {
    if (!skips) return !file.at_end() && offset() < range.end;
    for (; !file.at_end(); file.skip(file.left())) {
      if (offset() >= range.end || offset() + file.left() <= range.begin) continue;
      if (offset() < range.begin) file.skip(range.begin - offset());
      return true;
    }
    return false;
  }
  /// Moves the walk through memory to the position of the file; they differ after skipped bytes.
  void follow() {
    const std::uint64_t position = file.position() - start;
    if (memory.position() != position) memory.seek(position);
  }

  /// Returns as many equal pieces as file and window allow.
  Steps file_steps(std::uint64_t unit, std::uint64_t most, Extent range) const {
    Steps steps = file.steps(unit, most);
    if (steps.count == 1) return steps;
    if (skips) return {steps.stride, 1};
    const std::uint64_t space = range.end - offset() - unit,
                        stride = static_cast<std::uint64_t>(steps.stride);
    if ((steps.count - 1) * stride > space) steps.count = space / stride + 1;
    return steps;
  }
  Batch file_batch(Extent range) const {
    Batch batch;
    batch.offset = offset();
    batch.unit = std::min(file.left(), range.end - batch.offset);
    const Steps steps =
        file_steps(batch.unit, batch.unit == file.left() ? file.blocks() : 1, range);
    batch.count = steps.count;
    batch.file_stride = steps.stride;
    return batch;
  }
  Batch batch(Extent range) const {
    Batch batch;
    batch.offset = offset();
    batch.memory = memory_at();
    const std::uint64_t space = range.end - batch.offset;
    batch.unit = std::min({file.left(), memory.left(), space});
    // The side whose block ends first determines their number, without a division.
    const std::uint64_t most = batch.unit == file.left()     ? file.blocks()
                               : batch.unit == memory.left() ? memory.blocks()
                                                             : 1;
    Steps of_memory = memory.steps(batch.unit, most);
    const Steps of_file = file_steps(batch.unit, of_memory.count, range);
    batch.count = of_file.count;
    batch.file_stride = of_file.stride;
    batch.memory_stride = of_memory.stride;
    return batch;
  }

  template <class Copy>
  std::uint64_t move_batch(Extent range, const Copy& copy) {
    const Batch found = batch(range);
    copy(found);
    file.take(found.unit, found.count);
    memory.take(found.unit, found.count);
    return found.unit * found.count;
  }
  /// Moves blocks of a list of one side, as long as they lie in one block of the other side.
  /// Returns their bytes; 0: there are none.
  template <class Copy>
  std::uint64_t move_listed(Extent range, const Copy& copy) {
    if (skips) return 0;
    Batch one = {.offset = offset(), .memory = memory_at(), .count = 1};
    const auto copy_from_memory = [&](std::int64_t at, std::uint64_t length) {
      one.memory = memory_at(at);
      one.unit = length;
      copy(one);
      one.offset += length;
    };
    const auto copy_to_file = [&](std::int64_t at, std::uint64_t length) {
      one.offset = static_cast<std::uint64_t>(at);
      one.unit = length;
      copy(one);
      one.memory += length;
    };
    std::uint64_t moved = memory.take_listed(std::min(file.left(), range.end - one.offset),
                                             INT64_MAX, copy_from_memory);
    if (moved > 0) return file.skip(moved), moved;
    moved = file.take_listed(memory.left(), static_cast<std::int64_t>(range.end), copy_to_file);
    if (moved > 0) memory.skip(moved);
    return moved;
  }
  /// Calls `copy` for the batches of a window, and returns their bytes.
  template <class Copy>
  std::uint64_t move(Extent range, const Copy& copy) {
    std::uint64_t bytes = 0;
    for (enter(range), follow(); find(range);) {
      if (skips) follow();
      const std::uint64_t listed = move_listed(range, copy);
      bytes += listed > 0 ? listed : move_batch(range, copy);
    }
    leave(range);
    return bytes;
  }

  std::uintptr_t buffer;
  Walk file, memory;
  std::uint64_t start;  ///< file walk's position at byte 0 of the memory walk
  bool skips;  ///< pieces are not in file order: each is examined, and skipped if it lies elsewhere
  std::uint64_t reached =
      0;  ///< the walk stands at the first byte at or after this offset of the file
  Extent taken_from = {};  ///< the window of next()
};

namespace {

/// Marks pieces of a window; counts bits without dividing.
class Marks {
 public:
  Marks(Extent range, Coverage coverage)
      : words_(coverage.words),
        begin_(range.begin),
        shift_(static_cast<unsigned>(std::countr_zero(coverage.granule))) {}

  void mark(const Batch& batch) const {
    if (words_ == nullptr) return;
    const std::uint64_t from = batch.offset - begin_,
                        stride = static_cast<std::uint64_t>(batch.file_stride);
    const std::uint64_t length = batch.unit + ((std::uint64_t{1} << shift_) - 1);
    if (batch.file_stride == static_cast<std::int64_t>(batch.unit))
      return run(from, batch.unit * batch.count);
    if (batch.count == 1) return run(from, batch.unit);
    detail::mark_runs(words_, from >> shift_, length >> shift_, stride >> shift_, batch.count);
  }

 private:
  void run(std::uint64_t from, std::uint64_t length) const {
    const std::uint64_t first = from >> shift_,
                        past = (from + length + (std::uint64_t{1} << shift_) - 1) >> shift_;
    detail::mark_run(words_, first, past - first);
  }

  std::uint64_t* words_;
  std::uint64_t begin_;
  unsigned shift_;
};

}  // namespace

Walker::Walker(const Access& access) : state_(std::make_shared<State>(access)) {}

std::uint64_t Walker::gather(Extent range, std::byte* image, Coverage coverage, Stores stores) {
  const auto copy = stores == Stores::cached ? detail::copy_blocks : detail::stream_blocks;
  const Marks marks(range, coverage);
  const std::uint64_t bytes = state_->move(range, [&](const Batch& batch) {
    copy(image + (batch.offset - range.begin), batch.file_stride, batch.memory, batch.memory_stride,
         batch.unit, batch.count);
    marks.mark(batch);
  });
  if (stores == Stores::past_caches) detail::fence_stores();
  return bytes;
}

void copy_past_caches(std::byte* to, std::span<const std::byte> from) {
  detail::stream_blocks(to, 0, from.data(), 0, from.size(), 1);
  detail::fence_stores();
}

std::uint64_t Walker::scatter(Extent range, const std::byte* image) {
  return state_->move(range, [&](const Batch& batch) {
    detail::copy_blocks(batch.memory, batch.memory_stride, image + (batch.offset - range.begin),
                        batch.file_stride, batch.unit, batch.count);
  });
}

std::uint64_t Walker::mark(Extent range, Coverage coverage) {
  State& state = *state_;
  const Marks marks(range, coverage);
  std::uint64_t bytes = 0;
  for (state.enter(range); state.find(range);) {
    const Batch batch = state.file_batch(range);
    marks.mark(batch);
    state.file.take(batch.unit, batch.count);
    bytes += batch.unit * batch.count;
  }
  state.leave(range);
  return bytes;
}

namespace {

bool append(std::span<std::span<std::byte>> memory, std::size_t& used, std::byte* at,
            std::uint64_t length) {
  if (used > 0 && memory[used - 1].data() + memory[used - 1].size() == at) {
    memory[used - 1] = {memory[used - 1].data(), memory[used - 1].size() + length};
    return true;
  }
  if (used == memory.size()) return false;
  memory[used++] = {at, length};
  return true;
}

}  // namespace

Extent Walker::next(Extent range, std::span<std::span<std::byte>> memory, std::size_t& used) {
  State& state = *state_;
  if (range != state.taken_from) state.enter(range);
  state.taken_from = range;
  used = 0;
  if (!state.find(range)) return {range.end, range.end};
  state.follow();
  Extent run = Extent::at(state.offset(), 0);
  while (!state.file.at_end() && state.offset() == run.end && run.end < range.end) {
    const std::uint64_t unit =
        std::min({state.file.left(), state.memory.left(), range.end - run.end});
    if (!append(memory, used, state.memory_at(), unit)) break;
    run.end += unit;
    state.file.skip(unit);
    state.memory.skip(unit);
  }
  state.reached = run.end;
  return run;
}

}  // namespace pario::pattern
