#include "trace/schema.hpp"

#include "trace/columns.hpp"
#include "trace/format.hpp"

namespace pario::trace {
namespace {

struct FieldInfo {
  const char *name, *unit;
};

constexpr FieldInfo kProcessFields[] = {
#define PARIO_PROCESS(name, unit, meaning) {#name, #unit},
#include "trace/process.def"
#undef PARIO_PROCESS
};

constexpr FieldInfo kRecordFields[] = {
#define PARIO_COUNTER(name, unit, meaning) {#name, #unit},
#include "trace/counters.def"
#undef PARIO_COUNTER
};

constexpr const char* kLayerNames[] = {"posix", "stdio", "mpiio"};
constexpr const char* kOpNames[] = {"open", "close", "read", "write", "seek", "stat", "sync", "flush", "map", "truncate", "other"};

void write_pair(base::Json& json, const char* first, const char* second) { json.begin_array().value(first).value(second).end_array(); }

void write_fields(base::Json& json, const char* key, std::span<const FieldInfo> fields) {
  json.key(key).begin_array();
  for (const FieldInfo& field : fields) write_pair(json, field.name, field.unit);
  json.end_array();
}

void write_names(base::Json& json, const char* key, std::span<const char* const> names) {
  json.key(key).begin_array();
  for (const char* name : names) json.value(name);
  json.end_array();
}

/// Member by member as text: there are hundreds, every process writes them, and identifiers need no escapes.
void write_function(base::TextBuffer& out, std::size_t id, const FunctionInfo& function) {
  out.add(R"({"id":)").add(id).add(R"(,"name":")").add(function.name).add(R"(","category":")").add(function.category);
  out.add(R"(","op":")").add(kOpNames[static_cast<std::size_t>(function.op)]).add(R"("})");
}

void write_functions(base::Json& json, base::TextBuffer& out, std::span<const FunctionInfo> functions) {
  json.key("functions").begin_array();
  for (std::size_t id = 0, written = 0; id < functions.size(); ++id) {
    if (functions[id].name == nullptr) continue;  // a gap between the rooms' ids
    if (written++ != 0) out.add(',');
    write_function(out, id, functions[id]);
  }
  json.end_array();
}

}  // namespace

void write_schema(base::TextBuffer& out, std::span<const FunctionInfo> functions) {
  base::Json json(out);
  json.begin_object().member("version", kLogVersion).member("pario", PARIO_VERSION);
  write_fields(json, "process", kProcessFields);
  write_fields(json, "record", kRecordFields);
  json.key("event").begin_array();
  for (const Column& column : kEventColumns) write_pair(json, column.name, column.type);
  json.end_array();
  write_functions(json, out, functions);
  write_names(json, "layers", kLayerNames);
  write_names(json, "ops", kOpNames);
  json.end_object();
}

}  // namespace pario::trace
