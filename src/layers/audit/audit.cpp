// libpario-audit.so, which `pario run` names in LD_AUDIT: the dynamic linker asks it for the file
// of each shared library (rtld-audit(7)). It answers from module node_cache: the copy of a library
// in a cached tree, and no file for a name that is missing there. The linker keeps the own name of
// a library that it finds on a search path, but not of one that the program names: there, a library
// that uses $ORIGIN keeps its file.
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <climits>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/base/base.hpp"
#include "layers/node_cache/node_cache.hpp"

namespace {

using namespace pario;

/// The answer; the dynamic linker asks with its lock held.
char place[PATH_MAX];

/// True if a library names other files by its own place; true as well if it cannot be read.
bool uses_origin(const char* library, std::size_t size) {
  constexpr std::string_view kOrigin = "ORIGIN";  // $ORIGIN or ${ORIGIN}
  const int file = base::open_file(library, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  void* const bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  base::close_file(file);
  if (bytes == MAP_FAILED) return true;
  const bool found = ::memmem(bytes, size, kOrigin.data(), kOrigin.size()) != nullptr;
  ::munmap(bytes, size);
  return found;
}

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
  const auto size = static_cast<std::size_t>(facts.status.st_size);
  if (flag == LA_SER_ORIG && uses_origin(copy.c_str(), size)) return itself;
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
