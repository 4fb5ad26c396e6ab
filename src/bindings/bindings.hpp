// Module bindings: the Python extension module pario._native. One source file per topic, each with
// a function that adds its part to the module. Arrays are passed as numpy arrays without copies;
// long functions release the GIL. Interpreters without a GIL do not turn it on: classes are added
// as LockedClass, and functions share no variables.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/base.hpp"

namespace pario::bindings {

/// The tables of counters: counter_table, process_table, op_table, layer_names, size_bins,
/// mpiio_table.
void add_tables(nanobind::module_& module);

/// Event chunks of process logs: checksum, frame_events, decode_events, permute_rows.
void add_events(nanobind::module_& module);

/// The tables of options and hints: hint_table, check_variables, check_file_hint,
/// check_stream_specifications.
void add_hints(nanobind::module_& module);

/// Layouts of files and file systems: stripes_of, set_stripes, choose_stripes, file_system_names
/// and related functions.
void add_stripes(nanobind::module_& module);

/// Files of records: indexes, shuffling, packing, RecordFile.
void add_records(nanobind::module_& module);

/// Directories as shards of tar and an index: pack_directory, Archive.
void add_archive(nanobind::module_& module);

/// Objects of stores: set_object_store, KeptObjects.
void add_objects(nanobind::module_& module);

/// Batches of records, read ahead: RecordLoader, record_order. After add_records.
void add_loader(nanobind::module_& module);

/// Ranks of another library: Comm, open_alone. After add_shared_file.
void add_comm(nanobind::module_& module);

/// Files that ranks write and read together: SharedFile.
void add_shared_file(nanobind::module_& module);

/// Checksums and compression of elements: box_checksum, Compressor, decompress_elements.
void add_checkpoint(nanobind::module_& module);

/// Costs of accesses on described machines: model_cost, model_turns, model_call, model_parameters.
void add_model(nanobind::module_& module);

/// Timing of calls that move the bytes of a file: time_way, resident.
void add_ways(nanobind::module_& module);

/// Replay of recorded calls: replay_verbs, ReplayPlayer.
void add_replay(nanobind::module_& module);

/// Files that consist of subfiles: join.
void add_storage(nanobind::module_& module);

/// Converts paths and names, which may have any bytes.
inline std::string text_of(const nanobind::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }
inline std::vector<std::string> texts_of(const std::vector<nanobind::bytes>& all) {
  std::vector<std::string> texts;
  for (const nanobind::bytes& bytes : all) texts.push_back(text_of(bytes));
  return texts;
}
inline nanobind::bytes to_bytes(std::string_view text) {
  return nanobind::bytes(text.data(), text.size());
}

/// Converts a name to the value of an enumeration at the same place. Raises ValueError that begins
/// with `unknown` for other names.
template <class Value, std::size_t count>
Value parse_name(const char* const (&names)[count], const std::string& name, const char* unknown) {
  const auto* found = std::ranges::find(names, name);
  if (found == std::end(names)) throw nanobind::value_error((unknown + (": " + name)).c_str());
  return static_cast<Value>(found - std::begin(names));
}

/// A class of which a thread at a time uses an object, also in interpreters without a GIL: a method
/// locks its object, except while it has released the GIL.
template <class T>
class LockedClass : public nanobind::class_<T> {
  using Base = nanobind::class_<T>;

 public:
  using Base::Base;

  template <class Function, class... Extra>
  LockedClass& def(const char* name, Function&& function, const Extra&... extra) {
    Base::def(name, std::forward<Function>(function), nanobind::lock_self(), extra...);
    return *this;
  }

  template <class... Arguments, class... Extra>
  LockedClass& def(nanobind::init<Arguments...>&& make, const Extra&... extra) {
    Base::def(std::move(make), extra...);
    return *this;
  }

  template <class Getter, class... Extra>
  LockedClass& def_prop_ro(const char* name, Getter&& getter, const Extra&... extra) {
    Base::def_prop_ro(name, std::forward<Getter>(getter), nanobind::lock_self(), extra...);
    return *this;
  }
};

/// A text of any bytes, as those of names, in UTF-8: other bytes become `\xff`. Needs the GIL.
std::string printable(std::string_view text);

/// Raises an error as a Python exception.
[[noreturn]] void raise_os_error(int number, std::string_view text);
[[noreturn]] void raise_os_error(const base::Error& error);

}  // namespace pario::bindings
