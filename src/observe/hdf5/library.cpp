#include "observe/hdf5/library.hpp"

#include <dlfcn.h>

#include <algorithm>

namespace pario::hdf5 {
namespace {

constexpr std::size_t kMostCallers = 64;
constexpr unsigned kOldestMinor = 10;  // of HDF5 1: identifiers of 64 bits

bool is_interposed(std::string_view name) {
  return std::ranges::any_of(kFunctions, [&](const Function& row) { return name == row.name; });
}

bool is_other_function(std::string_view name) {
  return name.size() > 3 && name.starts_with("H5") && name[2] >= 'A' && name[2] <= 'Z' &&
         !name.ends_with("_g") && !is_interposed(name);
}

constexpr symbols::LibraryKind kHdf5{"H5get_libversion", is_other_function};

constinit symbols::Callers<Library, kMostCallers> callers;

}  // namespace

Library& Library::of(Word caller) { return callers.of(caller); }

void Library::load(stack::Range code, Word caller) {
  find(kHdf5, code, caller);
  if (handle() != nullptr) load_functions();
  set_loaded();
}

void Library::load_functions() {
  bool complete = true;
#define PARIO_USED_IF_PRESENT(member, symbol, ...) \
  member = reinterpret_cast<decltype(member)>(dlsym(handle(), #symbol));
#define PARIO_USED(member, symbol, ...)               \
  PARIO_USED_IF_PRESENT(member, symbol, __VA_ARGS__); \
  complete = complete && member != nullptr;
#include "observe/hdf5/library.def"
#undef PARIO_USED
#undef PARIO_USED_IF_PRESENT
  const auto version =
      reinterpret_cast<int (*)(unsigned*, unsigned*, unsigned*)>(dlsym(handle(), kHdf5.known));
  unsigned major = 0, minor = 0, release = 0;
  is_known_ = complete && version != nullptr && version(&major, &minor, &release) >= 0 &&
              (major > 1 || minor >= kOldestMinor);
}

void* Library::real(Id id) {
  const auto number = static_cast<std::size_t>(id);
  return real_at(number, kHdf5, kFunctions[number].name);
}

}  // namespace pario::hdf5
