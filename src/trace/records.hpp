// The rows of counters: one per path and layer, found by the hash of the path.
#pragma once

#include <string_view>

#include "trace/format.hpp"
#include "trace/name_hash.hpp"
#include "trace/trace.hpp"

namespace pario::trace {

class Log;

/// A set of 64-bit hashes that only grows, up to a bound; never shrinks, never locks (its owner does).
class HashSet {
 public:
  /// Whether `hash` is new. False too when the set is full.
  bool insert(std::uint64_t hash);

 private:
  bool grow();

  std::uint64_t* slots_ = nullptr;
  std::size_t mask_ = 0, used_ = 0;
};

class Records {
 public:
  /// Makes the rows that take what finds no other place. False when the disk is full.
  bool begin(Log& log, std::uint64_t files_limit);

  using Facts = FileFacts (*)(void* context);
  /// The row of a path, made when it is new; never null.
  Record* get(Log& log, Layer layer, std::string_view path, Facts facts, void* context);
  /// The row that a path has already, or null.
  Record* known(Layer layer, std::string_view path) const { return find(layer, path, hash_name(path)); }
  /// Gives a row the facts of its file, unless it has them. Whether it had none.
  bool complete(Record& row, const FileFacts& facts);
  /// The row of the same path and layer as a row of the parent's log.
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
  Record* fold(Log& log, Layer layer, std::string_view path, std::uint64_t hash, Facts facts, void* context);
  void note_folded(std::uint64_t hash);
  Record* insert_locked(Log& log, Layer layer, std::string_view path, std::uint64_t hash, const FileFacts& facts, bool folded);
  Record* insert(Log& log, Layer layer, std::string_view path, std::uint64_t hash, const FileFacts& facts, bool folded);
  Record* new_row(Log& log);
  bool write_path(Log& log, std::string_view path, Record& row);
  bool make_room();
  static void set_facts(Record& row, const FileFacts& facts);
  static void enter(Table& table, std::uint64_t hash, Record* row);

  std::uint64_t lock_ = 0;
  std::uint64_t files_limit_ = 0;
  std::uint64_t paths_ = 0, directories_ = 0, rows_ = 0;
  Table* table_ = nullptr;
  BlockHeader* block_ = nullptr;
  BlockHeader* strings_ = nullptr;
  Record* fallback_[3] = {};
  HashSet folded_;
};

}  // namespace pario::trace
