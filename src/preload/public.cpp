// What the program, or what watches it from inside (python/pario/launch/hook), may tell the log.
#include <cstddef>

#include "trace/trace.hpp"

/// Adds a note to the log of this process: a JSON object of one line (docs/log-format.md). Nothing while nothing is recorded.
extern "C" __attribute__((visibility("default"))) void pario_note(const char* json, std::size_t size) { pario::trace::note({json, size}); }
