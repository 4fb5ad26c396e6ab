// The rows of the log (docs/log-format.md): counters, facts of the process, events and calls in
// progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pario::trace {

/// The interface of a call (calls.def). The log's `layers`.
enum class Layer : std::uint8_t {
#define PARIO_LAYER(name) name,
#include "core/trace/calls.def"
};

inline constexpr std::size_t kLayerCount = 0
#define PARIO_LAYER(name) +1
#include "core/trace/calls.def"
    ;

/// The effect of a call on a file, which selects its counters (calls.def). The log's `ops`.
enum class Op : std::uint8_t {
#define PARIO_OP(name, calls, time, nested) name,
#include "core/trace/calls.def"
};

/// The counters of one file and layer; the members are those of counters.def, in that order.
struct Record {
#define PARIO_COUNTER(name, unit, use, meaning) std::uint64_t name;
#include "core/trace/counters.def"
#undef PARIO_COUNTER
};

/// The facts of this process; the members are those of process.def.
struct Process {
#define PARIO_PROCESS(name, unit, use, meaning) std::uint64_t name;
#include "core/trace/process.def"
#undef PARIO_PROCESS
};

/// The role of a field in the tables of readers (counters.def, process.def).
enum class Use : std::uint8_t { value, optional, size, key, unread };
enum class Unit : std::uint8_t { count, bytes, ticks, time, ns, id };
/// A row of counters.def or process.def.
struct FieldInfo {
  const char* name;
  Unit unit;
  Use use;
  const char* meaning;
};
/// A row PARIO_OP of calls.def: the names of the operation and of its counters.
struct OpInfo {
  const char *name, *calls, *time;
};
std::span<const FieldInfo> counter_table();
std::span<const FieldInfo> process_table();
std::span<const OpInfo> op_table();
std::span<const char* const> layer_names();
const char* name_of(Unit unit);
const char* name_of(Use use);
/// The largest sizes of the size classes but the last, which is open.
std::span<const std::uint64_t> size_bins();

/// An event as stored in the log (docs/log-format.md, Events).
struct Event {
  std::uint64_t start, duration, offset, length;
  std::uint32_t file, count, span;
  std::uint16_t function;
  std::uint8_t thread, flags;
};
static_assert(sizeof(Event) == 48);

enum EventFlags : std::uint8_t {
  kFailed = 1,
  kInMpiIo = 2,
  kInMpi = 4,
  kCollective = 8,
  kShort = 16,
  kInView = 32,
  kAsync = 64,
  kNamed = 128  ///< calls in progress only: the row has a path
};

/// Index of an intercepted function in the table given to start().
using FunctionId = std::uint16_t;
inline constexpr std::size_t kMaxFunctions = 1024;
inline constexpr std::uint64_t kUnknownOffset = ~std::uint64_t{0};

/// No file.
inline constexpr std::uint32_t kNoFile = ~std::uint32_t{0};

/// A call in progress as stored in the log (docs/log-format.md, Thread block). All members but
/// `path` have the values of the call's later Event.
struct CallRow {
  std::uint64_t start;  ///< ticks; 0: no call
  std::uint64_t offset, length;
  std::uint32_t file;
  FunctionId function;
  std::uint8_t flags, unused;
  char path[224];  ///< as the program gave it, terminated by zero, perhaps cut; only with kNamed
};
static_assert(sizeof(CallRow) == 256);
/// Nested calls that a thread shows; of deeper ones the innermost.
inline constexpr std::uint32_t kNestedCalls = 3;

}  // namespace pario::trace
