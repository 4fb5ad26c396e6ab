// The rows of counters: one per path and layer, found by the hash of the path.
#pragma once

#include <string_view>

#include "core/trace/format.hpp"
#include "core/trace/name_hash.hpp"
#include "core/trace/trace.hpp"

namespace pario::trace {

class Log;

/// A set of 64-bit hashes that only grows, up to a limit. Its owner locks it.
class HashSet {
 public:
  /// Adds `hash`; returns true if it is new. False also if the set is full.
  bool insert(std::uint64_t hash);

 private:
  bool grow();

  std::uint64_t* slots_ = nullptr;
  std::size_t mask_ = 0, used_ = 0;
};

class Records {
 public:
  /// Creates the rows for calls without another row. False if the disk is full.
  bool begin(Log& log, std::uint64_t files_limit);

  using Facts = FileFacts (*)(void* context);
  /// Returns the row of a path, creating a new one; never null.
  Record* get(Log& log, Layer layer, std::string_view path, Facts facts, void* context);
  /// Returns the existing row of a path, or null.
  Record* find_existing(Layer layer, std::string_view path) const {
    return find(layer, path, hash_name(path));
  }
  /// Sets the facts of a row's file, unless it has them. True if it had none.
  bool complete(Record& row, const FileFacts& facts);
  /// Returns the row of the same path and layer as a row of the parent's log.
  Record* adopt(Log& log, const Record& parents);

 private:
  struct Entry {
    std::uint64_t hash;
    Record* record;
  };
  struct Table {
    std::size_t mask;
    Entry entries[1];
  };

  Record* find(Layer layer, std::string_view path, std::uint64_t hash) const;
  bool known_in_any_layer(std::string_view path, std::uint64_t hash) const;
  bool is_over_limit(std::string_view path, std::uint64_t hash);
  Record* fold(Log& log, Layer layer, std::string_view path, std::uint64_t hash, Facts facts,
               void* context);
  void note_folded(std::uint64_t hash);
  Record* insert_locked(Log& log, Layer layer, std::string_view path, std::uint64_t hash,
                        const FileFacts& facts, bool folded);
  Record* insert(Log& log, Layer layer, std::string_view path, std::uint64_t hash,
                 const FileFacts& facts, bool folded);
  Record* new_row(Log& log);
  bool write_path(Log& log, std::string_view path, Record& row);
  bool grow_table();
  static void set_facts(Record& row, const FileFacts& facts);
  static void enter(Table& table, std::uint64_t hash, Record* row);

  std::uint64_t lock_ = 0;
  std::uint64_t files_limit_ = 0;
  std::uint64_t paths_ = 0, directories_ = 0, rows_ = 0;
  Table* table_ = nullptr;
  BlockHeader* block_ = nullptr;
  BlockHeader* strings_ = nullptr;
  Record* fallback_[kLayerCount] = {};
  HashSet folded_;
};

}  // namespace pario::trace
