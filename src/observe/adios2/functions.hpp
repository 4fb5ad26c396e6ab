// The table of functions.def as data.
#pragma once

#include <array>
#include <cstdint>

#include "observe/adios2/adios2.hpp"
#include "observe/datasets/datasets.hpp"

namespace pario::adios2 {

using symbols::Word;

/// The arguments of a function that the tracer reads. All but `open` begin with the engine.
enum class Role : std::uint8_t {
  open,       ///< (IO, name, ...), returns an engine
  close,      ///< (engine, ...)
  other,      ///< (engine, ...)
  step,       ///< (engine, mode, seconds): seconds is a float
  variable,   ///< (engine, variable, data, mode)
  selection,  ///< (engine, variable, data, selection, mode)
  span,       ///< (engine, variable, ...), returns memory of the engine for the data
  name,       ///< (engine, name of a variable, data, mode)
};

/// The types of memory, by their mangled names.
enum class Type : std::uint8_t {
#define PARIO_ADIOS2_TYPE(type, size) type,
#include "observe/adios2/functions.def"
  count
};
inline constexpr std::size_t kTypeCount = static_cast<std::size_t>(Type::count);
inline constexpr std::uint8_t kSizes[kTypeCount] = {
#define PARIO_ADIOS2_TYPE(type, size) size,
#include "observe/adios2/functions.def"
};
inline constexpr const char* kTypes[kTypeCount] = {
#define PARIO_ADIOS2_TYPE(type, size) #type,
#include "observe/adios2/functions.def"
};

/// The functions as the log counts them.
enum class Id : std::uint8_t {
#define PARIO_ADIOS2(function, op) function,
#include "observe/adios2/functions.def"
  count
};
inline constexpr std::size_t kFunctionCount = static_cast<std::size_t>(Id::count);
inline constexpr std::array<trace::FunctionInfo, kFunctionCount> kNames = {{
#define PARIO_ADIOS2(function, op) {"adios2::" #function, "adios2", trace::Op::op},
#include "observe/adios2/functions.def"
}};

/// An interposed symbol: a form of a function.
struct Function {
  const char* symbol;
  Id id;
  std::uint8_t arguments;
  Role role;
  Type type;
  const char* name;
  trace::Op op;
};
constexpr Function make_function(const char* symbol, Id id, std::uint8_t arguments, Role role,
                                 Type type = Type::count) {
  const trace::FunctionInfo& named = kNames[static_cast<std::size_t>(id)];
  return {symbol, id, arguments, role, type, named.name, named.op};
}

enum class SymbolId : std::uint16_t {
#define PARIO_ADIOS2_SYMBOL(symbol, ...) symbol,
#define PARIO_ADIOS2_STEP(symbol, ...) symbol,
#define PARIO_ADIOS2_TYPED(type, begin, end, ...) begin##end,
#include "observe/adios2/functions.def"
  count
};
inline constexpr std::size_t kSymbolCount = static_cast<std::size_t>(SymbolId::count);
inline constexpr std::array<Function, kSymbolCount> kFunctions = {{
#define PARIO_ADIOS2_SYMBOL(symbol, arguments, function, role) \
  make_function(#symbol, Id::function, arguments, Role::role),
#define PARIO_ADIOS2_STEP(symbol, function) make_function(#symbol, Id::function, 3, Role::step),
#define PARIO_ADIOS2_TYPED(type, begin, end, arguments, function, role) \
  make_function(#begin #end, Id::function, arguments, Role::role, Type::type),
#include "observe/adios2/functions.def"
}};

/// Forwards and records a call. `words` has word_capacity(arguments) words, of which a float is in
/// the lower half of its own; `caller` is the address to which the definition returns.
Word dispatch(SymbolId id, const Word* words, Word caller);

}  // namespace pario::adios2
