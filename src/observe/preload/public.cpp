// Functions for the program, or for the hook inside it (python/pario/see/launch/hook).
#include <cstddef>

#include "core/trace/trace.hpp"
#include "layers/caching/caching.hpp"

/// Adds a note to the log of this process: a JSON object of one line (docs/log-format.md). Does
/// nothing if the process is not traced.
extern "C" __attribute__((visibility("default"))) void pario_note(const char* json,
                                                                  std::size_t size) {
  pario::trace::note({json, size});
}

/// Names files that the program will open soon, in this order; each name ends with a zero.
extern "C" __attribute__((visibility("default"))) void pario_read_ahead(const char* names,
                                                                        std::size_t size) {
  pario::caching::read_ahead({names, size});
}
