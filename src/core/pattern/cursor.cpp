#include "core/pattern/walk.hpp"

namespace pario::pattern {

struct Cursor::State {
  State(const detail::Tiling& tiling, std::uint64_t position, std::uint64_t bytes)
      : walk(tiling.tree, tiling.origin, tiling.begin, tiling.begin + bytes),
        shift(position - tiling.begin),
        end(position + (tiling.tree ? bytes : 0)) {
    fill();
  }

  std::uint64_t position() const { return shift + walk.position() - run.length; }
  /// Consumes the next block and the blocks that continue it.
  void fill() {
    run = {walk.at(), 0};
    while (!walk.at_end() &&
           walk.at() == detail::plus(run.offset, static_cast<std::int64_t>(run.length))) {
      run.length += walk.left();
      walk.skip(walk.left());
    }
  }
  void advance(std::uint64_t bytes) {
    run.offset += static_cast<std::int64_t>(bytes);
    run.length -= bytes;
    if (run.length == 0) fill();
  }

  detail::Walk walk;    ///< positioned after the run
  std::uint64_t shift;  ///< difference of positions of the caller and of the walk
  std::uint64_t end;
  Run run;
};

Cursor::Cursor(const TypeMap& layout, std::uint64_t position, std::uint64_t bytes)
    : state_(std::make_shared<State>(detail::tile(layout, position, bytes), position, bytes)) {}

Run Cursor::current() const { return state_->run; }
void Cursor::advance(std::uint64_t bytes) { state_->advance(bytes); }
std::uint64_t Cursor::position() const { return state_->position(); }
std::uint64_t Cursor::remaining() const { return state_->end - state_->position(); }

void Cursor::seek_offset(std::int64_t offset) {
  State& state = *state_;
  if (state.run.length > 0 &&
      detail::plus(state.run.offset, static_cast<std::int64_t>(state.run.length)) <= offset) {
    if (state.walk.is_ordered()) {
      state.walk.seek_offset(offset);
      state.fill();
    } else {
      while (state.run.length > 0 &&
             detail::plus(state.run.offset, static_cast<std::int64_t>(state.run.length)) <= offset)
        state.advance(state.run.length);
    }
  }
  if (state.run.length > 0 && state.run.offset < offset)
    state.advance(static_cast<std::uint64_t>(offset - state.run.offset));
}

}  // namespace pario::pattern
