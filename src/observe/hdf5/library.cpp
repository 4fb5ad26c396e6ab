#include "observe/hdf5/library.hpp"

#include <dlfcn.h>

#include <algorithm>

#include "core/symbols/symbols.hpp"
#include "observe/hdf5/references.hpp"

namespace pario::hdf5 {
namespace {

constexpr std::size_t kMostCallers = 64;
constexpr unsigned kOldestMinor = 10;  // of HDF5 1: identifiers of 64 bits
constexpr const char* kEveryHdf5 = "H5get_libversion";

/// By caller; the first one is for unknown callers.
constinit Library libraries[kMostCallers];
constinit std::atomic<std::size_t> claimed{1};

bool is_interposed(std::string_view name) {
  return std::ranges::any_of(kFunctions, [&](const Function& row) { return name == row.name; });
}

/// True for the names of HDF5's functions that are not interposed.
bool is_other_function(std::string_view name) {
  return name.size() > 3 && name.starts_with("H5") && name[2] >= 'A' && name[2] <= 'Z' &&
         !name.ends_with("_g") && !is_interposed(name);
}

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

/// True if the object of a function is an HDF5 library itself.
bool is_part_of_hdf5(const void* function) {
  const link_map* map = map_of(function);
  void* handle = map != nullptr ? handle_of(*map) : nullptr;
  if (handle == nullptr) return false;
  const void* known = dlsym(handle, kEveryHdf5);
  dlclose(handle);
  return known != nullptr && map_of(known) == map;
}

}  // namespace

Library& Library::of(Word caller) {
  const std::size_t count = std::min(claimed.load(std::memory_order_acquire), kMostCallers);
  for (std::size_t i = 1; i < count; ++i)
    if (libraries[i].is_loaded_.load(std::memory_order_acquire) &&
        libraries[i].code_.contains(caller))
      return libraries[i];
  // Two threads may claim places for the same caller: no lock is held, because the dynamic linker
  // has one of its own.
  stack::Object object;
  const bool has_place = count < kMostCallers && stack::find_object(caller, object);
  const std::size_t place = has_place ? claimed.fetch_add(1, std::memory_order_acq_rel) : 0;
  Library& library = libraries[place < kMostCallers ? place : 0];
  if (!library.is_loaded_.load(std::memory_order_acquire))
    library.load(&library == libraries ? stack::Range{} : object.range, caller);
  return library;
}

void Library::load(stack::Range code, Word caller) {
  code_ = code;
  map_ = code.contains(caller) ? map_of(reinterpret_cast<const void*>(caller)) : nullptr;
  if (map_ != nullptr) scope_ = handle_of(*map_);
  void* const function = find_any_function();
  const link_map* map = function != nullptr ? map_of(function) : nullptr;
  void* const handle = map != nullptr ? handle_of(*map) : nullptr;
  // The function may be one of a library that is built upon HDF5.
  void* const known = handle != nullptr ? dlsym(handle, kEveryHdf5) : nullptr;
  if (known != nullptr) {
    hdf5_ = handle_of(*map_of(known));
    load_functions();
  }
  is_loaded_.store(true, std::memory_order_release);
}

void Library::load_functions() {
  bool complete = true;
#define PARIO_USED_IF_PRESENT(member, symbol, ...) \
  member = reinterpret_cast<decltype(member)>(dlsym(hdf5_, #symbol));
#define PARIO_USED(member, symbol, ...)               \
  PARIO_USED_IF_PRESENT(member, symbol, __VA_ARGS__); \
  complete = complete && member != nullptr;
#include "observe/hdf5/library.def"
#undef PARIO_USED
#undef PARIO_USED_IF_PRESENT
  const auto version =
      reinterpret_cast<int (*)(unsigned*, unsigned*, unsigned*)>(dlsym(hdf5_, kEveryHdf5));
  unsigned major = 0, minor = 0, release = 0;
  is_known_ = complete && version != nullptr && version(&major, &minor, &release) >= 0 &&
              (major > 1 || minor >= kOldestMinor);
}

/// Finds the definition to which the dynamic linker binds a reference of the caller: the global one
/// first.
void* Library::find(const char* name, const char* version) const {
  void* const global = find_in(RTLD_NEXT, name, version);
  if (global != nullptr || scope_ == nullptr) return global;
  return find_in(scope_, name, version);
}

/// Finds a function of the caller's HDF5 that no tool interposes.
void* Library::find_any_function() const {
  const Reference other = map_ != nullptr ? find_reference(*map_, is_other_function) : Reference{};
  void* function = other.name != nullptr ? find(other.name, other.version) : nullptr;
  if (function == nullptr) function = find(kEveryHdf5, "");
  return function != nullptr ? function : symbols::find_in_plugins(kEveryHdf5);
}

void* Library::real(Id id) {
  auto& place = real_[static_cast<std::size_t>(id)];
  void* function = place.load(std::memory_order_relaxed);
  if (function != nullptr) return function;
  const char* name = kFunctions[static_cast<std::size_t>(id)].name;
  const Reference own = map_ != nullptr ? find_reference(*map_, name) : Reference{};
  void* const next = find_in(RTLD_NEXT, name, own.version);
  function = hdf5_ != nullptr ? dlsym(hdf5_, name) : nullptr;
  if (next != nullptr && (function == nullptr || !is_part_of_hdf5(next))) function = next;
  place.store(function, std::memory_order_relaxed);
  return function;
}

}  // namespace pario::hdf5
