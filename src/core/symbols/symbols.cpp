#include "core/symbols/symbols.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cerrno>
#include <climits>
#include <cstring>

namespace pario::symbols {
namespace {

#if defined(__x86_64__)
constexpr const char* kFirstVersion = "GLIBC_2.2.5";
#else
constexpr const char* kFirstVersion = "GLIBC_2.17";
#endif

long fail_with_enosys() {
  errno = ENOSYS;
  return -1;
}

/// The name of the loaded library at a place of the loader's list; empty: none.
struct LoadedName {
  int place;
  char text[PATH_MAX];
};

int find_name(dl_phdr_info* library, std::size_t, void* wanted) {
  auto& name = *static_cast<LoadedName*>(wanted);
  if (name.place-- != 0) return 0;
  std::strncpy(name.text, library->dlpi_name, sizeof name.text - 1);
  return 1;
}

/// True for a function of this library, which cannot be the next one.
bool is_own(void* function) {
  Dl_info found{}, own{};
  return dladdr(function, &found) != 0 &&
         dladdr(reinterpret_cast<void*>(&fail_with_enosys), &own) != 0 &&
         found.dli_fbase == own.dli_fbase;
}

}  // namespace

void* find_in_plugins(const char* name) {
  for (int place = 0;; ++place) {
    LoadedName library{place, {}};
    if (dl_iterate_phdr(find_name, &library) == 0) return nullptr;
    if (library.text[0] == '\0') continue;
    void* handle = dlopen(library.text, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* function = dlsym(handle, name);
    dlclose(handle);
    if (function != nullptr && !is_own(function)) return function;
  }
}

void* find_real_function(Symbol symbol) {
  const char* name = kFunctions[id_of(symbol)].name;
  void* function = dlsym(RTLD_NEXT, name);
  // dlsym does not find symbols that remain for old binaries only, such as __xstat.
  if (function == nullptr) function = dlvsym(RTLD_NEXT, name, kFirstVersion);
  if (function == nullptr) function = find_in_plugins(name);
  return function != nullptr ? function : reinterpret_cast<void*>(&fail_with_enosys);
}

}  // namespace pario::symbols
