// Beneath the wrappers, beneath the buffers even: where settings say how new files are striped (PARIO_HINTS), the calls that create files
// are stand-ins that have them made with these stripes. Elsewhere nothing stands in for anything.
#pragma once

#include "preload/symbols.hpp"

namespace pario::preload::creating {

/// What stands in for a symbol whose real function is `function`.
void* stand_in(Symbol symbol, void* function);

}  // namespace pario::preload::creating
