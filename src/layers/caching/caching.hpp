// Module caching: the lowest layer. It answers the program's questions about names in the trees of
// PARIO_CACHED_TREES (`run.cached_trees`) from module node_cache: one process per node asks the
// file system. Files that are opened to be read are copies in the memory of the node. Calls that
// change a name are noted in the cache first, and pass it from then on.
#pragma once

#include <sys/stat.h>

#include <string_view>

#include "layers/chain/chain.hpp"

namespace pario::caching {

/// True if the job has a cache on this node. Reads the settings at the first call.
bool is_active();
/// Reads the status of the file of a name from the cache: 0, the errno of a missing file, or -1:
/// ask the file system.
int read_status(const char* path, struct stat& status);
/// Copies files that the program will open soon, in this order, if `run.loader_ahead` is set. The
/// names end with a zero. Does not wait. Uses the heap.
void read_ahead(std::string_view names);
/// The treatment of a function in column `caching` of treatments.def; null: none.
void* treatment_of(symbols::Symbol symbol);

}  // namespace pario::caching
