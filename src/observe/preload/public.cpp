// Notes of the program, or of the hook inside it (python/pario/see/launch/hook), for the log.
#include <cstddef>

#include "core/trace/trace.hpp"

/// Adds a note to the log of this process: a JSON object of one line (docs/log-format.md). Does
/// nothing if the process is not traced.
extern "C" __attribute__((visibility("default"))) void pario_note(const char* json,
                                                                  std::size_t size) {
  pario::trace::note({json, size});
}
