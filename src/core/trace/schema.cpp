#include "core/trace/schema.hpp"

#include "core/trace/columns.hpp"
#include "core/trace/counters.hpp"
#include "core/trace/format.hpp"

namespace pario::trace {
namespace {

constexpr FieldInfo kProcessFields[] = {
#define PARIO_PROCESS(name, unit, use, meaning) {#name, Unit::unit, Use::use, meaning},
#include "core/trace/process.def"
#undef PARIO_PROCESS
};

constexpr FieldInfo kRecordFields[] = {
#define PARIO_COUNTER(name, unit, use, meaning) {#name, Unit::unit, Use::use, meaning},
#include "core/trace/counters.def"
#undef PARIO_COUNTER
};

constexpr const char* kLayerNames[] = {
#define PARIO_LAYER(name) #name,
#include "core/trace/calls.def"
};
constexpr OpInfo kOps[] = {
#define PARIO_OP(name, calls, time, nested) {#name, #calls, #time},
#include "core/trace/calls.def"
};

void write_pair(base::Json& json, const char* first, const char* second) {
  json.begin_array().value(first).value(second).end_array();
}

void write_fields(base::Json& json, const char* key, std::span<const FieldInfo> fields) {
  json.key(key).begin_array();
  for (const FieldInfo& field : fields) write_pair(json, field.name, name_of(field.unit));
  json.end_array();
}

void write_names(base::Json& json, const char* key, std::span<const char* const> names) {
  json.key(key).begin_array();
  for (const char* name : names) json.value(name);
  json.end_array();
}

/// Writes plain text without the JSON writer: every process writes hundreds of functions, and
/// identifiers need no escapes.
void write_function(base::TextBuffer& out, std::size_t id, const FunctionInfo& function) {
  out.add(R"({"id":)")
      .add(id)
      .add(R"(,"name":")")
      .add(function.name)
      .add(R"(","category":")")
      .add(function.category);
  out.add(R"(","op":")").add(kOps[static_cast<std::size_t>(function.op)].name).add(R"("})");
}

void write_functions(base::Json& json, base::TextBuffer& out,
                     std::span<const FunctionInfo> functions) {
  json.key("functions").begin_array();
  for (std::size_t id = 0, written = 0; id < functions.size(); ++id) {
    if (functions[id].name == nullptr) continue;  // a gap between the IDs of two modules
    if (written++ != 0) out.add(',');
    write_function(out, id, functions[id]);
  }
  json.end_array();
}

}  // namespace

std::span<const FieldInfo> counter_table() { return kRecordFields; }
std::span<const FieldInfo> process_table() { return kProcessFields; }
std::span<const OpInfo> op_table() { return kOps; }
std::span<const char* const> layer_names() { return kLayerNames; }
std::span<const std::uint64_t> size_bins() { return detail::kSizeBins; }

const char* name_of(Unit unit) {
  constexpr const char* kNames[] = {"count", "bytes", "ticks", "time", "ns", "id"};
  return kNames[static_cast<std::size_t>(unit)];
}

const char* name_of(Use use) {
  constexpr const char* kNames[] = {"value", "optional", "size", "key", "unread"};
  return kNames[static_cast<std::size_t>(use)];
}

void write_schema(base::TextBuffer& out, std::span<const FunctionInfo> functions) {
  base::Json json(out);
  json.begin_object().member("version", kLogVersion).member("pario", PARIO_VERSION);
  write_fields(json, "process", kProcessFields);
  write_fields(json, "record", kRecordFields);
  json.member("calls_in_progress", kNestedCalls);
  json.key("event").begin_array();
  for (const Column& column : kEventColumns) write_pair(json, column.name, column.type);
  json.end_array();
  write_functions(json, out, functions);
  write_names(json, "layers", kLayerNames);
  json.key("ops").begin_array();
  for (const OpInfo& op : kOps) json.value(op.name);
  json.end_array();
  json.end_object();
}

}  // namespace pario::trace
