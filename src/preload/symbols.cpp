#include "preload/symbols.hpp"

#include <dlfcn.h>

#include <cerrno>

#include "preload/beneath.hpp"
#include "preload/creating.hpp"
#include "preload/kept.hpp"
#include "preload/staged.hpp"

namespace pario::preload {
namespace {

#if defined(__x86_64__)
constexpr const char* kFirstVersion = "GLIBC_2.2.5";
#else
constexpr const char* kFirstVersion = "GLIBC_2.17";
#endif

long missing() {
  errno = ENOSYS;
  return -1;
}

}  // namespace

constinit std::atomic<void*> real_functions[kSymbols] = {};

void* resolve(Symbol symbol) {
  const char* name = kFunctions[id_of(symbol)].name;
  void* function = dlsym(RTLD_NEXT, name);
  // dlsym does not see symbols that remain for old binaries only, such as __xstat.
  if (function == nullptr) function = dlvsym(RTLD_NEXT, name, kFirstVersion);
  if (function == nullptr) function = reinterpret_cast<void*>(&missing);
  function = kept::stand_in(symbol, beneath::stand_in(symbol, creating::stand_in(symbol, staged::stand_in(symbol, function))));
  real_functions[id_of(symbol)].store(function, std::memory_order_relaxed);
  return function;
}

}  // namespace pario::preload
