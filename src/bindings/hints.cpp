// The tables of options and hints, and their parsers: `pario run` reports a bad option once, before
// the processes of a run start.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "core/hints/hints.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

thread_local std::vector<std::string> complaints;  // of the call in progress

/// The complaints of the tracer about variables, written NAME=value.
std::vector<std::string> check_variables(std::vector<std::string> variables) {
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  complaints.clear();
  hints::HintSet unused = hints::defaults();
  hints::read_environment(unused, environment.data(),
                          [](std::string_view text) { complaints.emplace_back(text); });
  return complaints;
}

const char* type_name(hints::Type type) {
  constexpr const char* kNames[] = {"text",   "bytes", "count", "seconds", "flag",
                                    "choice", "mode",  "text",  "text"};
  return kNames[static_cast<std::size_t>(type)];
}

/// Table and key in pario.toml (empty: none), type, default, other names, meaning; the carrier
/// (variable, hint or stream) and its name; range; the moment of effect; whether the row is risky.
using Row = std::tuple<std::string, std::string, std::string, std::string, std::vector<std::string>,
                       std::string, std::string, std::string, std::uint64_t, std::uint64_t,
                       std::string, bool>;

const char* name_of(hints::When when) {
  constexpr const char* kNames[] = {"anytime", "at_open", "at_creation", "striping"};
  return kNames[static_cast<std::size_t>(when)];
}

std::vector<std::string> split(std::string_view words) {
  std::istringstream text{std::string(words)};
  return {std::istream_iterator<std::string>(text), {}};
}

void add_rows(std::vector<Row>& rows, std::span<const hints::HintInfo> table, const char* carrier) {
  for (const hints::HintInfo& info : table) {
    const std::string setting = info.setting;
    const std::size_t dot = setting.find('.');
    const bool variable = std::string_view(carrier) == "variable";
    rows.emplace_back(setting.substr(0, dot), dot == setting.npos ? "" : setting.substr(dot + 1),
                      type_name(info.type), info.initial,
                      variable ? std::vector<std::string>() : split(info.names), info.meaning,
                      carrier, variable ? info.names : info.key, info.least, info.most,
                      name_of(info.when), info.risk == hints::Risk::risky);
  }
}

/// Every row of hints.def, file_hints.def, striping_hints.def and stream_hints.def.
std::vector<Row> hint_table() {
  std::vector<Row> rows;
  add_rows(rows, hints::table(), "variable");
  add_rows(rows, hints::file_table(), "hint");
  add_rows(rows, hints::stream_table(), "stream");
  return rows;
}

/// The complaints about a value of PARIO_STREAMS or IOBUF_PARAMS.
std::vector<std::string> check_stream_specifications(const std::string& origin,
                                                     const std::string& specifications) {
  complaints.clear();
  hints::check_stream_specifications(origin, specifications,
                                     [](std::string_view text) { complaints.emplace_back(text); });
  return complaints;
}

/// The reason why a setting of a file is invalid or has no effect; empty: it is valid.
std::string check_file_hint(const std::string& key, const std::string& value) {
  hints::FileHints unused = hints::default_file_hints();
  std::string reason;
  hints::set(unused, {key, value}, reason);
  return reason;
}

}  // namespace

void add_hints(nb::module_& module) {
  module.def("check_variables", check_variables, "variables"_a);
  module.def("hint_table", hint_table,
             "Rows of the tables of hints: table, name, kind, default, aliases, meaning, carrier, "
             "carried, least, most, when, risky.");
  module.def("check_file_hint", check_file_hint, "key"_a, "value"_a);
  module.def("check_stream_specifications", check_stream_specifications, "origin"_a,
             "specifications"_a);
}

}  // namespace pario::bindings
