// Wrappers of calls on mappings. Accesses to mapped memory cannot be intercepted; the report shows
// the bytes mapped.
#include <sys/mman.h>

#include "observe/preload/calls.hpp"
#include "observe/preload/mappings.hpp"

using namespace pario::preload;
namespace trace = pario::trace;

namespace {

template <class Real>
void* trace_map(Symbol symbol, int descriptor, size_t size, off_t offset, Real real) {
  Description* file = descriptor >= 0 && active() ? descriptors::find(descriptor) : nullptr;
  if (file == nullptr) return real();
  const auto start =
      start_on(symbol, *file, trace::Layer::posix, static_cast<std::uint64_t>(offset), size);
  return count_call(start, real, [&](Span span, void* address) {
    count_on(symbol, *file, span, address == MAP_FAILED, static_cast<std::uint64_t>(offset), size);
    if (address != MAP_FAILED) mappings::add(address, record_of(*file, trace::Layer::posix));
  });
}

/// Traces a call on the file mapped at `address`.
template <class Real>
int trace_on_mapping(Symbol symbol, const void* address, Real real) {
  trace::Record* record = active() ? mappings::find(address) : nullptr;
  if (record == nullptr) return real();
  return count_call(
      {.function = id_of(symbol), .file = trace::index_of(record)}, real,
      [&](Span span, int result) { count_row(symbol, record, span, is_failure(result)); });
}

}  // namespace

#define MMAP(name)                                                                                 \
  PARIO_WRAP(void*, name, void* hint, size_t size, int protection, int flags, int fd,              \
             off_t offset) {                                                                       \
    if ((flags & MAP_FIXED) != 0) forget_readable();                                               \
    return trace_map(Symbol::name, (flags & MAP_ANONYMOUS) != 0 ? -1 : fd, size, offset,           \
                     [&] { return PARIO_REAL(name)(hint, size, protection, flags, fd, offset); }); \
  }
MMAP(mmap)
MMAP(mmap64)

PARIO_WRAP(int, munmap, void* address, size_t size) {
  forget_readable();
  return trace_on_mapping(Symbol::munmap, address, [&] {
    mappings::remove(address);
    return PARIO_REAL(munmap)(address, size);
  });
}

PARIO_WRAP(int, msync, void* address, size_t size, int flags) {
  return trace_on_mapping(Symbol::msync, address,
                          [&] { return PARIO_REAL(msync)(address, size, flags); });
}
