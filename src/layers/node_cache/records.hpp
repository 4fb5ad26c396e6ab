// The stored facts of names. Internal to module node_cache.
#pragma once

#include <string_view>

#include "layers/node_cache/node_cache.hpp"

namespace pario::node_cache::records {

/// The stored state of a name.
struct Record {
  enum class State : std::uint8_t { absent, changing, facts };
  State state = State::absent;
  Facts facts = {};
};

/// True if this process has seen that the storage of records has ended.
bool are_closed();
/// Reads a record; the target of a symbolic link is appended to `target`, if given.
Record read(std::string_view name, base::TextBuffer* target = nullptr);
/// Stores facts, with the target of a symbolic link. False: a record exists already, or the storage
/// has ended.
bool store(std::string_view name, const Facts& facts, std::string_view target);
/// Replaces the record by the note that the job changes the name.
void store_note(std::string_view name);
/// Removes all records, and ends the storage of new ones.
void close_all();

}  // namespace pario::node_cache::records
