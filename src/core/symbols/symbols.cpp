#include "core/symbols/symbols.hpp"

#include <dlfcn.h>

#include <cerrno>

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

}  // namespace

void* find_real_function(Symbol symbol) {
  const char* name = kFunctions[id_of(symbol)].name;
  void* function = dlsym(RTLD_NEXT, name);
  // dlsym does not find symbols that remain for old binaries only, such as __xstat.
  if (function == nullptr) function = dlvsym(RTLD_NEXT, name, kFirstVersion);
  return function != nullptr ? function : reinterpret_cast<void*>(&fail_with_enosys);
}

}  // namespace pario::symbols
