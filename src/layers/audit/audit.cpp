// libpario-audit.so, which `pario run` names in LD_AUDIT: the dynamic linker asks it for the file
// of each shared library (rtld-audit(7)). It answers from module node_cache: the copy of a library
// in a cached tree, and no file for a name that is missing there. The linker keeps the library's
// own name, so that $ORIGIN has its meaning.
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>

#include <climits>
#include <cstdint>
#include <cstring>

#include "core/base/base.hpp"
#include "layers/node_cache/node_cache.hpp"

namespace {

using namespace pario;

/// The answer; the dynamic linker asks with its lock held.
char place[PATH_MAX];

char* find_library(const char* path, unsigned flag) {
  char* const itself = const_cast<char*>(path);
  const node_cache::Name name(AT_FDCWD, path);
  if (!name.is_cached() || !node_cache::is_open()) return itself;
  base::Text<PATH_MAX> end, copy;
  const node_cache::Facts facts = node_cache::find_behind_links(name, end);
  // The linker reports the error of a library that the program names.
  if (facts.is_missing()) return flag == LA_SER_ORIG ? itself : nullptr;
  if (!facts.is(S_IFREG) || !node_cache::find_copy(end.view(), facts, copy) || !copy.complete())
    return itself;
  return std::strcpy(place, copy.c_str());
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) unsigned la_version(unsigned version) {
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

__attribute__((visibility("default"))) char* la_objsearch(const char* name, std::uintptr_t*,
                                                          unsigned flag) {
  return std::strchr(name, '/') == nullptr ? const_cast<char*>(name) : find_library(name, flag);
}
}
