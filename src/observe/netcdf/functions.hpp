// The table of functions.def as data.
#pragma once

#include <array>
#include <cstdint>

#include "observe/datasets/datasets.hpp"
#include "observe/netcdf/netcdf.hpp"

namespace pario::netcdf {

using symbols::Word;

enum class Kind : std::uint8_t { netcdf, pnetcdf };

/// The arguments of a function that the tracer reads. A file is an int, as is a variable.
enum class Role : std::uint8_t {
  create_at_2,    ///< (name, ..., file*): the index of the last one
  create_at_4,    ///< the same
  open_at_2,      ///< the same, of an existing file
  open_at_3,      ///< the same
  open_at_4,      ///< the same
  create_second,  ///< (communicator, name, ., ., file*)
  open_second,    ///< the same, of an existing file
  close,          ///< (file)
  other,          ///< (file, ...)
  access,         ///< (file, variable, mode)
  element,        ///< (file, variable, index, ...)
  whole,          ///< (file, variable, ...)
  block,          ///< (file, variable, start, count, ...)
  strided,        ///< (file, variable, start, count, stride, ...)
  blocks,         ///< (file, variable, number, starts, counts, ...)
  fill,           ///< (file, variable, ...): one record
};

/// The way of a transfer.
enum How : std::uint8_t { kPlain = 0, kAll = 1, kNonblocking = 2 };

/// The types of memory of typed functions. The first one is the function without a type.
#define PARIO_NC_TYPES(row, ...)                                                               \
  row(, __VA_ARGS__) row(_text, __VA_ARGS__) row(_schar, __VA_ARGS__) row(_uchar, __VA_ARGS__) \
      row(_ubyte, __VA_ARGS__) row(_short, __VA_ARGS__) row(_int, __VA_ARGS__)                 \
          row(_long, __VA_ARGS__) row(_float, __VA_ARGS__) row(_double, __VA_ARGS__)           \
              row(_ushort, __VA_ARGS__) row(_uint, __VA_ARGS__) row(_longlong, __VA_ARGS__)    \
                  row(_ulonglong, __VA_ARGS__) row(_string, __VA_ARGS__)

/// The functions as the log counts them.
enum class Id : std::uint16_t {
#define PARIO_NC(library, symbol, arguments, op, role) symbol,
#define PARIO_NC_TYPED(library, begin, end, arguments, op, role, how) begin##end,
#include "observe/netcdf/functions.def"
#undef PARIO_NC
#undef PARIO_NC_TYPED
  count
};
inline constexpr std::size_t kFunctionCount = static_cast<std::size_t>(Id::count);

struct Function {
  const char* name;
  Kind kind;
  std::uint8_t arguments;
  trace::Op op;
  Role role;
  std::uint8_t how;
};
inline constexpr std::array<Function, kFunctionCount> kFunctions = {{
#define PARIO_NC(library, symbol, arguments, op, role) \
  {#symbol, Kind::library, arguments, trace::Op::op, Role::role, kPlain},
#define PARIO_NC_TYPED(library, begin, end, arguments, op, role, how) \
  {#begin #end, Kind::library, arguments, trace::Op::op, Role::role, how},
#include "observe/netcdf/functions.def"
#undef PARIO_NC
#undef PARIO_NC_TYPED
}};

/// The interposed symbols: those of a function follow each other.
enum class SymbolId : std::uint16_t {
#define PARIO_NC(library, symbol, ...) symbol,
#define PARIO_NC_SYMBOL(type, begin, end) begin##type##end,
#define PARIO_NC_TYPED(library, begin, end, ...) PARIO_NC_TYPES(PARIO_NC_SYMBOL, begin, end)
#include "observe/netcdf/functions.def"
#undef PARIO_NC
#undef PARIO_NC_SYMBOL
#undef PARIO_NC_TYPED
  count
};
inline constexpr std::size_t kSymbolCount = static_cast<std::size_t>(SymbolId::count);

/// Forwards and records a call. `words` has word_capacity(arguments) words, `caller` is the address
/// to which the definition returns.
Word dispatch(Id id, SymbolId symbol, const Word* words, Word caller);

}  // namespace pario::netcdf
