#include "observe/adios2/library.hpp"

#include <dlfcn.h>

#include <algorithm>

namespace pario::adios2 {
namespace {

constexpr std::size_t kMostCallers = 16;

bool is_other_function(std::string_view name) {
  return (name.starts_with("_ZN6adios24core") || name.starts_with("_ZNK6adios24core")) &&
         std::ranges::none_of(kFunctions, [&](const Function& row) { return name == row.symbol; });
}

constexpr symbols::LibraryKind kAdios2{"_ZN6adios24core5ADIOS8FlushAllEv", is_other_function};

constinit symbols::Callers<Library, kMostCallers> callers;

/// Sets a function to the symbol begin + middle + end of a library, or null.
template <class Member>
void set(Member& member, void* handle, const char* begin, const char* middle, const char* end) {
  base::Text<256> symbol;
  symbol.add(begin).add(middle).add(end);
  member = reinterpret_cast<Member>(dlsym(handle, symbol.c_str()));
}

}  // namespace

Library& Library::of(Word caller) { return callers.of(caller); }

void Library::load(stack::Range code, Word caller) {
  find(kAdios2, code, caller);
  if (handle() != nullptr) load_types();
  set_loaded();
}

void Library::load_types() {
  set(io_of, handle(), "_ZN6adios24core6Engine5GetIOEv", "", "");
  set(total_size, handle(), "_ZNK6adios24core12VariableBase9TotalSizeEv", "", "");
  set(free, RTLD_DEFAULT, "_ZdlPv", "", "");
  if (free == nullptr) set(free, handle(), "_ZdlPv", "", "");
  constexpr const char* kVariable = "_ZNK6adios24core8VariableI";
  for (std::size_t i = 0; i < kTypeCount; ++i) {
    TypeFunctions& type = types_[i];
    set(type.selection_size, handle(), kVariable, kTypes[i], "E13SelectionSizeEv");
    set(type.size_of, handle(), kVariable, kTypes[i], "E13SelectionSizeERKNS0_9SelectionE");
    set(type.count, handle(), kVariable, kTypes[i], "E5CountEv");
    set(type.inquire, handle(), "_ZN6adios24core2IO15InquireVariableI", kTypes[i],
        "EEPNS0_8VariableIT_EERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
  }
}

void* Library::real(SymbolId id) {
  const auto number = static_cast<std::size_t>(id);
  return real_at(number, kAdios2, kFunctions[number].symbol);
}

}  // namespace pario::adios2
