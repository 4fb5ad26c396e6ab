// The directory of the cache: keys, places, locks. Internal to module node_cache.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/base.hpp"

namespace pario::node_cache::store {

/// The settings: the directory of the cache, empty if there is none; the trees.
std::string_view directory();
std::string_view trees();

/// The directory of an absolute name.
std::string_view parent_of(std::string_view name);

/// Appends the place of a name in a part of the cache ("names", "copies", "lists", "ahead").
void add_place(base::TextBuffer& out, std::string_view part, std::string_view name);
/// Appends a name for a place that is not complete yet, which no other thread uses.
void add_temporary(base::TextBuffer& out, std::string_view part);

/// True if the file system of the cache has space for a file.
bool has_space_for(std::uint64_t bytes);

/// The exclusive right to ask the file system about a name, on this node.
class Lock {
 public:
  explicit Lock(std::string_view name);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::uint64_t byte_;
  int descriptor_;
};

}  // namespace pario::node_cache::store
