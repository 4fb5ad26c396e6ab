// Options, so that a bad one is said before a run starts and not by each of its processes.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "hints/hints.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

std::vector<std::string> complaints;  // of the call in progress, which holds the GIL

/// What the tracer would say to variables written NAME=value.
std::vector<std::string> check_variables(std::vector<std::string> variables) {
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  complaints.clear();
  hints::HintSet unused = hints::defaults();
  hints::read_environment(unused, environment.data(), [](std::string_view text) { complaints.emplace_back(text); });
  return complaints;
}

const char* type_name(hints::Type type) {
  constexpr const char* kNames[] = {"text", "bytes", "count", "seconds", "flag", "choice", "mode", "text", "text"};
  return kNames[static_cast<std::size_t>(type)];
}

using Row = std::tuple<std::string, std::string, std::string, std::string, std::string, bool>;

/// The hints of a file: key, type, default, aliases (blanks between), meaning, whether it is read
/// at open only.
std::vector<Row> file_hints() {
  std::vector<Row> rows;
  for (const hints::HintInfo& info : hints::file_table())
    rows.emplace_back(info.key, type_name(info.type), info.initial, info.names, info.meaning, info.when == hints::When::at_open);
  return rows;
}

using StreamRow = std::tuple<std::string, std::string, std::string, std::uint64_t, std::uint64_t, std::string>;

/// What may be set for the buffers of a file: key, type, default, least, most, meaning.
std::vector<StreamRow> stream_hints() {
  std::vector<StreamRow> rows;
  for (const hints::HintInfo& info : hints::stream_table())
    rows.emplace_back(info.key, type_name(info.type), info.initial, info.least, info.most, info.meaning);
  return rows;
}

/// What is wrong with a value of PARIO_STREAMS or IOBUF_PARAMS, part by part.
std::vector<std::string> check_stream_specifications(const std::string& origin, const std::string& specifications) {
  complaints.clear();
  hints::check_stream_specifications(origin, specifications, [](std::string_view text) { complaints.emplace_back(text); });
  return complaints;
}

/// What is wrong with a setting of a file, or why it changes nothing; empty: it is taken.
std::string check_file_hint(const std::string& key, const std::string& value) {
  hints::FileHints unused = hints::default_file_hints();
  std::string reason;
  hints::set(unused, {key, value}, reason);
  return reason;
}

}  // namespace

void add_hints(nb::module_& module) {
  module.def("check_variables", check_variables, "variables"_a);
  module.def("file_hints", file_hints);
  module.def("check_file_hint", check_file_hint, "key"_a, "value"_a);
  module.def("stream_hints", stream_hints);
  module.def("check_stream_specifications", check_stream_specifications, "origin"_a, "specifications"_a);
}

}  // namespace pario::bindings
