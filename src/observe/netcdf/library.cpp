#include "observe/netcdf/library.hpp"

#include <dlfcn.h>

#include <algorithm>

namespace pario::netcdf {
namespace {

constexpr std::size_t kMostCallers = 16;
constexpr const char* kPrefixes[] = {"nc_", "ncmpi_"};

constexpr const char* kSymbols[kSymbolCount] = {
#define PARIO_NC(library, symbol, ...) #symbol,
#define PARIO_NC_SYMBOL(type, begin, end) #begin #type #end,
#define PARIO_NC_TYPED(library, begin, end, ...) PARIO_NC_TYPES(PARIO_NC_SYMBOL, begin, end)
#include "observe/netcdf/functions.def"
#undef PARIO_NC
#undef PARIO_NC_SYMBOL
#undef PARIO_NC_TYPED
};

bool is_interposed(std::string_view name) {
  return std::ranges::any_of(kSymbols, [&](const char* symbol) { return name == symbol; });
}

template <Kind kind>
bool is_other_function(std::string_view name) {
  return name.starts_with(kPrefixes[static_cast<int>(kind)]) && !is_interposed(name);
}

constexpr symbols::LibraryKind kKinds[] = {
    {"nc_inq_libvers", is_other_function<Kind::netcdf>},
    {"ncmpi_inq_libvers", is_other_function<Kind::pnetcdf>},
};

template <Kind kind>
struct LibraryOfKind : Library {
  void load(stack::Range code, Word caller) { load_kind(kind, code, caller); }
};

constinit symbols::Callers<LibraryOfKind<Kind::netcdf>, kMostCallers> netcdf_callers;
constinit symbols::Callers<LibraryOfKind<Kind::pnetcdf>, kMostCallers> pnetcdf_callers;

}  // namespace

Library& Library::of(Kind kind, Word caller) {
  if (kind == Kind::netcdf) return netcdf_callers.of(caller);
  return pnetcdf_callers.of(caller);
}

void Library::load_kind(Kind kind, stack::Range code, Word caller) {
  kind_ = kind;
  find(kKinds[static_cast<int>(kind)], code, caller);
  if (handle() != nullptr) load_functions();
  set_loaded();
}

void* Library::find_function(const char* name) const {
  base::Text<64> symbol;
  symbol.add(kPrefixes[static_cast<int>(kind_)]).add(name);
  return dlsym(handle(), symbol.c_str());
}

void Library::load_functions() {
  is_known_ = true;
#define PARIO_USED_IF_PRESENT(member, name, parameters) \
  member = reinterpret_cast<decltype(member)>(find_function(#name));
#define PARIO_USED(member, name, parameters)       \
  PARIO_USED_IF_PRESENT(member, name, parameters); \
  is_known_ = is_known_ && member != nullptr;
#include "observe/netcdf/library.def"
#undef PARIO_USED
#undef PARIO_USED_IF_PRESENT
}

void* Library::real(SymbolId symbol) {
  const auto number = static_cast<std::size_t>(symbol);
  return real_at(number, kKinds[static_cast<int>(kind_)], kSymbols[number]);
}

}  // namespace pario::netcdf
