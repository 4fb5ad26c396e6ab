// Files that are copied into the node's cache before the program opens them, in the order in which
// a training loop will need them (PARIO_LOADER_AHEAD). Internal to module caching.
#pragma once

#include <cstddef>
#include <string_view>

#include "layers/node_cache/node_cache.hpp"

namespace pario::caching::ahead {

/// True if the settings ask for it, and the job has a cache on this node.
bool is_active();
/// Adds files that will be opened soon: names that end with a zero. Does not wait. Uses the heap.
void add(std::string_view names);
/// Writes the name of the copy of a file; false if there is none. The caller opens it once, and
/// removes it.
bool find(const node_cache::Name& name, base::TextBuffer& copy);
void remove(const char* copy);
/// Notes that the job changes a file. Before the change.
void note_change(const node_cache::Name& name);

}  // namespace pario::caching::ahead
