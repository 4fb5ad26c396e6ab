// Right above the C library: where files are staged to this node (PARIO_STAGE, `pario run --stage`), names of new files in a directory
// stand for names in another one, which lies on the node. Elsewhere nothing stands in for anything.
#pragma once

#include "preload/symbols.hpp"

namespace pario::preload::staged {

/// What stands in for a symbol whose real function is `function`.
void* stand_in(Symbol symbol, void* function);

}  // namespace pario::preload::staged
