// Module symbols: the interposed functions of the C library, their ids in the log, and the lookup
// of their real addresses. symbols.def is the one table.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "core/trace/trace.hpp"

namespace pario::symbols {

enum class Symbol : trace::FunctionId {
#define PARIO_SYMBOL(name, category, op) name,
#define PARIO_FACET PARIO_SYMBOL
#include "core/symbols/symbols.def"
#undef PARIO_FACET
#undef PARIO_SYMBOL
  count
};

inline constexpr std::size_t kSymbols = static_cast<std::size_t>(Symbol::count);

/// Names and categories, by id.
inline constexpr std::array<trace::FunctionInfo, kSymbols> kFunctions = {{
#define PARIO_SYMBOL(name, category, op) {#name, #category, trace::Op::op},
#define PARIO_FACET PARIO_SYMBOL
#include "core/symbols/symbols.def"
#undef PARIO_FACET
#undef PARIO_SYMBOL
}};

constexpr trace::FunctionId id_of(Symbol symbol) { return static_cast<trace::FunctionId>(symbol); }
constexpr trace::Op op_of(Symbol symbol) { return kFunctions[id_of(symbol)].op; }

/// Looks up the next definition of a symbol behind this library: that of the C library, of another
/// preloaded library, or of a library that the program has loaded. Never null: a missing function
/// fails with ENOSYS.
void* find_real_function(Symbol symbol);

/// Finds a function of a library that was loaded without RTLD_GLOBAL, which RTLD_NEXT does not see;
/// null if no other library has it.
void* find_in_plugins(const char* name);

/// The number of objects that the process has ever loaded.
unsigned long long count_loadings();
/// True if a loaded object refers to a function whose name `accepts` takes.
bool is_referenced(bool (*accepts)(std::string_view name));

}  // namespace pario::symbols
