// The tables of counters, for readers of logs: every row, so that a reader knows those it must
// fill.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "core/trace/trace.hpp"

namespace nb = nanobind;

namespace pario::bindings {
namespace {

using Field = std::tuple<std::string, std::string, std::string, std::string>;
using Op = std::tuple<std::string, std::string, std::string>;
using Statistic = std::tuple<std::string, std::string>;

std::vector<Field> to_rows(std::span<const trace::FieldInfo> fields) {
  std::vector<Field> rows;
  for (const trace::FieldInfo& field : fields)
    rows.emplace_back(field.name, trace::name_of(field.unit), trace::name_of(field.use),
                      field.meaning);
  return rows;
}

std::vector<Op> op_table() {
  std::vector<Op> rows;
  for (const trace::OpInfo& op : trace::op_table()) rows.emplace_back(op.name, op.calls, op.time);
  return rows;
}

std::vector<std::string> layer_names() {
  const auto names = trace::layer_names();
  return {names.begin(), names.end()};
}

std::vector<std::uint64_t> size_bins() {
  const auto bins = trace::size_bins();
  return {bins.begin(), bins.end()};
}

/// The statistics of an MPI-IO file as its note has them, and how two notes are combined.
std::vector<Statistic> mpiio_table() {
  return {
      {"open", "phase"},
#define PARIO_COUNTER(name) {#name, "sum"},
#define PARIO_DERIVED(name, value) {#name, "largest"},
#define PARIO_AVERAGE(name, sum, count) {#name, "ratio"},
#define PARIO_TIMER(member, name) {name, "phase"},
#include "parallel/engine/statistics.def"
#include "parallel/exchange/counters.def"
#undef PARIO_COUNTER
#undef PARIO_DERIVED
#undef PARIO_AVERAGE
#undef PARIO_TIMER
  };
}

}  // namespace

void add_tables(nb::module_& module) {
  module.def(
      "counter_table", [] { return to_rows(trace::counter_table()); },
      "Rows of counters.def: name, unit, use, meaning.");
  module.def(
      "process_table", [] { return to_rows(trace::process_table()); },
      "Rows of process.def: name, unit, use, meaning.");
  module.def("op_table", &op_table, "Operations of calls.def: name, counter of calls, of time.");
  module.def("layer_names", &layer_names, "Layers of calls.def.");
  module.def("size_bins", &size_bins, "Largest sizes of the size classes but the last.");
  module.def("mpiio_table", &mpiio_table,
             "Statistics of MPI-IO files: name; how to combine: sum, largest, ratio, phase.");
}

}  // namespace pario::bindings
