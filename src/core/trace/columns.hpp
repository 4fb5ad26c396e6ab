// The columns of an event chunk (docs/log-format.md, Events), the input of zstd. The tracer writes
// them, readers decode them.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/trace/trace.hpp"

namespace pario::trace {

/// A field of Event: its place in the row is also its place among the columns.
struct Column {
  const char* name;
  const char* type;  ///< name in the schema
  std::size_t offset, width;
};

inline constexpr std::array<Column, 10> kEventColumns{{
    {"start", "u64", offsetof(Event, start), sizeof(Event::start)},
    {"duration", "u64", offsetof(Event, duration), sizeof(Event::duration)},
    {"offset", "u64", offsetof(Event, offset), sizeof(Event::offset)},
    {"length", "u64", offsetof(Event, length), sizeof(Event::length)},
    {"file", "u32", offsetof(Event, file), sizeof(Event::file)},
    {"count", "u32", offsetof(Event, count), sizeof(Event::count)},
    {"span", "u32", offsetof(Event, span), sizeof(Event::span)},
    {"function", "u16", offsetof(Event, function), sizeof(Event::function)},
    {"thread", "u8", offsetof(Event, thread), sizeof(Event::thread)},
    {"flags", "u8", offsetof(Event, flags), sizeof(Event::flags)},
}};

/// Encodes `events` into `out`, which holds events.size_bytes() bytes: each column as wrapping
/// differences to the previous row (the first to zero), all lowest bytes first, then the next.
void encode_columns(std::span<const Event> events, std::byte* out);

/// Decodes events.size_bytes() bytes of `columns`, the inverse of encode_columns().
void decode_columns(const std::byte* columns, std::span<Event> events);

}  // namespace pario::trace
