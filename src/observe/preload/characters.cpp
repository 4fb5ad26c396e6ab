#include "observe/preload/characters.hpp"

#include "observe/preload/streams.hpp"

// The C library's list of open streams and its lock; declared in none of its headers.
extern "C" {
extern std::FILE* _IO_list_all;
void _IO_list_lock();
void _IO_list_unlock();
}

namespace pario::preload {
namespace {

/// Returns the characters moved since the mark. 0 if a call that is not wrapped has filled or
/// flushed the buffer or changed its direction.
std::size_t length_of_run(const std::FILE* stream, const CharacterRun& run, const char* mark) {
  if (run.writing.load(std::memory_order_relaxed) != is_putting(stream)) return 0;
  const char* position = position_in(stream);
  return mark >= stream->_IO_buf_base && mark < position ? static_cast<std::size_t>(position - mark)
                                                         : 0;
}

/// Returns the function under which a run is counted: the last one called, if it moves data in the
/// direction of the run; otherwise calls were inlined.
Symbol symbol_of(const CharacterRun& run) {
  const auto symbol = static_cast<Symbol>(run.symbol.load(std::memory_order_relaxed));
  const bool writing = run.writing.load(std::memory_order_relaxed);
  if ((op_of(symbol) == trace::Op::write) == writing) return symbol;
  return writing ? Symbol::__overflow : Symbol::__uflow;
}

std::uint64_t time_of_run(const CharacterRun& run, std::size_t length) {
  const std::uint64_t calls = run.sampled_calls.load(std::memory_order_relaxed);
  return calls == 0 ? 0 : length * run.sampled_ticks.load(std::memory_order_relaxed) / calls;
}

}  // namespace

void count_pending_run(std::FILE* stream, Description& file) {
  CharacterRun& run = file.characters;
  const char* mark = run.mark.load(std::memory_order_relaxed);
  const std::size_t length = length_of_run(stream, run, mark);
  if (length == 0) return;
  const std::uint64_t now = trace::ticks();
  const void* data = run.writing.load(std::memory_order_relaxed) ? mark : nullptr;
  count_stream({.symbol = symbol_of(run),
                .stream = stream,
                .data = data,
                .calls = static_cast<std::uint32_t>(length)},
               file, {now - time_of_run(run, length), now}, static_cast<std::int64_t>(length));
}

void count_pending_characters() {
  _IO_list_lock();
  for (std::FILE* stream = _IO_list_all; stream != nullptr; stream = stream->_chain)
    if (Description* file = descriptors::find_known(stream->_fileno)) {
      count_run(stream, *file);
      if (file->characters.mark.load(std::memory_order_relaxed) != nullptr)
        mark_counted(stream, *file);
    }
  _IO_list_unlock();
}

}  // namespace pario::preload
