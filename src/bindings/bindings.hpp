// Room bindings: the Python extension module pario._native. One source file per topic, each with a function that adds its part to the
// module. Arrays go in and out as numpy arrays without copies; the GIL is released where work is done.
#pragma once

#include <nanobind/nanobind.h>

#include "base/base.hpp"

namespace pario::bindings {

/// Event chunks of process logs: checksum, frame_events, decode_events, permute_rows.
void add_events(nanobind::module_& module);

/// The tables of options: check_variables, file_hints, check_file_hint.
void add_hints(nanobind::module_& module);

/// Where the bytes of files lie: stripes_of, set_stripes, choose_stripes and what goes with them.
void add_stripes(nanobind::module_& module);

/// Files of records: indices, shuffling, packing, RecordFile.
void add_records(nanobind::module_& module);

/// Directories as shards of tar and an index: pack_directory, Archive.
void add_archive(nanobind::module_& module);

/// Batches of records, read ahead: RecordLoader, record_order. After add_records.
void add_loader(nanobind::module_& module);

/// Checksums of boxes of arrays: box_checksum.
void add_checkpoint(nanobind::module_& module);

/// What accesses cost on described machines: model_cost, model_turns, model_call, model_parameters.
void add_model(nanobind::module_& module);

/// Calls that move the bytes of a file, timed: time_way, resident.
void add_ways(nanobind::module_& module);

/// Calls performed as they are written down: replay_verbs, ReplayPlayer.
void add_replay(nanobind::module_& module);

/// Files that consist of subfiles: join.
void add_storage(nanobind::module_& module);

/// The same as a Python exception.
[[noreturn]] void raise_os_error(const base::Error& error);

}  // namespace pario::bindings
