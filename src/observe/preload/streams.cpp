#include "observe/preload/streams.hpp"

#include <stdio_ext.h>

#include <algorithm>

namespace pario::preload {

using trace::Layer;
using trace::Record;

void note_buffer(std::FILE* stream, Description& file) {
  const std::size_t size = __fbufsize(stream);
  Record* record = size == 0 ? nullptr : record_of(file, Layer::stdio);
  if (record == nullptr) return;  // no buffer yet
  constexpr std::uint64_t kFull = 0, kLine = 1, kNone = 2;
  file.buffer_seen.store(true, std::memory_order_relaxed);
  trace::set(record, &Record::buffer_size, size);
  trace::set(record, &Record::buffer_mode, size == 1 ? kNone : __flbf(stream) != 0 ? kLine : kFull);
}

namespace {

/// Returns the place of the last bytes put into the stream's buffer; null if the buffer lacks them.
const char* find_last_bytes(const std::FILE* stream, std::uint64_t bytes) {
  const char *begin = stream->_IO_write_base, *end = stream->_IO_write_ptr;
  const bool inside = begin != nullptr && end > begin;
  return inside && bytes <= static_cast<std::uint64_t>(end - begin) ? end - bytes : nullptr;
}

}  // namespace

void count_stream(const StreamCall& call, Description& file, Span span, std::int64_t moved) {
  Record* record = record_of(file, Layer::stdio);
  if (record == nullptr) return;
  const std::uint64_t bytes = moved > 0 ? static_cast<std::uint64_t>(moved) : 0;
  const std::uint64_t asked =
      call.asked != 0 ? call.asked
                      : std::max<std::uint64_t>(bytes, op_of(call.symbol) == trace::Op::read);
  trace::count(
      record,
      {.function = id_of(call.symbol),
       .op = op_of(call.symbol),
       .start = span.start,
       .end = span.end,
       .offset = advance(file.position, bytes),
       .asked = asked,
       .result = moved,
       .open_flags = static_cast<std::uint32_t>(file.open_flags.load(std::memory_order_relaxed)),
       .data = bytes == 0       ? nullptr
               : call.formatted ? find_last_bytes(call.stream, bytes)
                                : call.data,
       .calls = call.calls});
  if (call.formatted) trace::add(record, &Record::formatted_calls, 1);
  if (!file.buffer_seen.load(std::memory_order_relaxed)) note_buffer(call.stream, file);
}

}  // namespace pario::preload
