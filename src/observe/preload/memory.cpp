// Wrappers of calls on mappings. Accesses to mapped memory cannot be intercepted; mappings.hpp
// counts the bytes touched.
#include <sys/mman.h>

#include "observe/preload/calls.hpp"
#include "observe/preload/mappings.hpp"
#include "observe/preload/rings.hpp"

using namespace pario::preload;
namespace trace = pario::trace;

namespace {

template <class Real>
void* trace_map(Symbol symbol, int descriptor, size_t size, off_t offset, Real real) {
  Description* file = descriptor >= 0 && active() ? descriptors::find(descriptor) : nullptr;
  if (file == nullptr) {
    void* address = real();
    if (descriptor >= 0 && address != MAP_FAILED && active())
      in_tracer(
          [&] { rings::add_mapping(descriptor, address, static_cast<std::uint64_t>(offset)); });
    return address;
  }
  const auto start =
      start_on(symbol, *file, trace::Layer::posix, static_cast<std::uint64_t>(offset), size);
  return count_call(start, real, [&](Span span, void* address) {
    count_on(symbol, *file, span, address == MAP_FAILED, static_cast<std::uint64_t>(offset), size);
    if (address != MAP_FAILED) mappings::add(address, size, record_of(*file, trace::Layer::posix));
  });
}

trace::CallStart start_on_row(Symbol symbol, const trace::Record* record) {
  return {.function = id_of(symbol), .file = trace::index_of(record)};
}

/// Returns the row of the file that is mapped at `address`; null: none.
trace::Record* record_at(const void* address) {
  trace::Record* record = nullptr;
  if (active() && !mappings::is_empty()) in_tracer([&] { record = mappings::find(address); });
  return record;
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

// Forgets the mapping before the real call: another thread may map the same addresses afterwards.
PARIO_WRAP(int, munmap, void* address, size_t size) {
  forget_readable();
  trace::Record* record = record_at(address);
  if (active()) in_tracer([&] { rings::end_mapping(address); });
  if (record == nullptr) return PARIO_REAL(munmap)(address, size);
  in_tracer([&] {
    mappings::sample(false);
    mappings::remove(address, size);
  });
  return count_call(
      start_on_row(Symbol::munmap, record), [&] { return PARIO_REAL(munmap)(address, size); },
      [&](Span span, int result) { count_row(Symbol::munmap, record, span, is_failure(result)); });
}

PARIO_WRAP(int, msync, void* address, size_t size, int flags) {
  trace::Record* record = record_at(address);
  if (record == nullptr) return PARIO_REAL(msync)(address, size, flags);
  return count_call(
      start_on_row(Symbol::msync, record), [&] { return PARIO_REAL(msync)(address, size, flags); },
      [&](Span span, int result) {
        count_row(Symbol::msync, record, span, is_failure(result));
        mappings::sample(false);
      });
}
