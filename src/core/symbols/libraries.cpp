#include "core/symbols/libraries.hpp"

#include <dlfcn.h>

#include "core/symbols/references.hpp"
#include "core/symbols/symbols.hpp"

namespace pario::symbols {
namespace {

const link_map* map_of(const void* address) {
  Dl_info info{};
  void* map = nullptr;
  const bool found = dladdr1(address, &info, &map, RTLD_DL_LINKMAP) != 0;
  return found ? static_cast<const link_map*>(map) : nullptr;
}

/// Returns a handle of a loaded object, which keeps it loaded.
void* handle_of(const link_map& map) {
  return dlopen(map.l_name[0] == '\0' ? nullptr : map.l_name, RTLD_LAZY | RTLD_NOLOAD);
}

void* find_in(void* scope, const char* name, const char* version) {
  return version[0] == '\0' ? dlsym(scope, name) : dlvsym(scope, name, version);
}

/// True if the object of a function is a library of this kind itself.
bool is_part_of(const LibraryKind& kind, const void* function) {
  const link_map* map = map_of(function);
  void* handle = map != nullptr ? handle_of(*map) : nullptr;
  if (handle == nullptr) return false;
  const void* known = dlsym(handle, kind.known);
  dlclose(handle);
  return known != nullptr && map_of(known) == map;
}

}  // namespace

void CalledLibrary::find(const LibraryKind& kind, stack::Range code, Word caller) {
  code_ = code;
  map_ = code.contains(caller) ? map_of(reinterpret_cast<const void*>(caller)) : nullptr;
  if (map_ != nullptr) scope_ = handle_of(*map_);
  void* const function = find_any_function(kind);
  const link_map* map = function != nullptr ? map_of(function) : nullptr;
  void* const handle = map != nullptr ? handle_of(*map) : nullptr;
  // The function may be one of a library that is built upon this one.
  void* const known = handle != nullptr ? dlsym(handle, kind.known) : nullptr;
  if (known != nullptr) handle_ = handle_of(*map_of(known));
}

/// Finds the definition to which the dynamic linker binds a reference of the caller: the global one
/// first.
void* CalledLibrary::find_bound(const char* name, const char* version) const {
  void* const global = find_in(RTLD_NEXT, name, version);
  if (global != nullptr || scope_ == nullptr) return global;
  return find_in(scope_, name, version);
}

/// Finds a function of the caller's library that no tool interposes.
void* CalledLibrary::find_any_function(const LibraryKind& kind) const {
  const Reference other =
      map_ != nullptr ? find_reference(*map_, kind.is_other_function) : Reference{};
  void* function = other.name != nullptr ? find_bound(other.name, other.version) : nullptr;
  if (function == nullptr) function = find_bound(kind.known, "");
  return function != nullptr ? function : find_in_plugins(kind.known);
}

void* CalledLibrary::find_real(const LibraryKind& kind, const char* name) const {
  const Reference own = map_ != nullptr ? find_reference(*map_, name) : Reference{};
  void* const next = find_in(RTLD_NEXT, name, own.version);
  void* const function = handle_ != nullptr ? dlsym(handle_, name) : nullptr;
  return next != nullptr && (function == nullptr || !is_part_of(kind, next)) ? next : function;
}

}  // namespace pario::symbols
