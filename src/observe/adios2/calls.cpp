// Forwards and records one call.
#include <bit>

#include "observe/adios2/library.hpp"

namespace pario::adios2 {
namespace {

using datasets::count;
using datasets::Object;
using datasets::Selection;
using datasets::show_on;

constexpr Word kFailed = 0;
constexpr Word kSync = 5;  // adios2::Mode
constexpr Word kEngine = 0;
constexpr std::size_t kLongestName = 4096;

/// std::string and the beginning of a variable as the C++11 ABI of libstdc++ lays them out.
struct String {
  const char* data;
  std::size_t size;
  std::string_view view() const { return {data, size}; }
};
struct Variable {
  void* table;
  String name;
};

constinit datasets::Objects open_objects;  // by engine; those of variables by their addresses

/// A call of the program, from its arguments to its row in the log.
struct Call : datasets::Call {
  Library& library;
  const Function& function;

  Word engine() const { return words[0]; }
  Object file() const { return open_objects.find(engine(), kEngine); }
};

/// Returns the name of an engine's class without its name spaces, such as BP5Writer.
std::string_view class_of(Word engine) {
  struct TypeInfo {
    void* table;
    const char* name;
  };
  const auto* table = *reinterpret_cast<const TypeInfo* const* const*>(engine);
  const std::string_view name = table[-1]->name;
  constexpr std::string_view kBegin = "N6adios24core6engine";
  if (!name.starts_with(kBegin) || !name.ends_with('E')) return name;
  const std::size_t first = name.find_first_not_of("0123456789", kBegin.size());
  return first < name.size() ? name.substr(first, name.size() - 1 - first) : name;
}

void open(Call& call) {
  const auto& name = *call.pointer<const String>(1);
  base::Text<kLongestName> path;
  path.add(name.view());
  call.run({.path = path.view()});
  const Object object{.record = datasets::record_of_file(trace::Layer::adios2, path.c_str())};
  open_objects.store(call.result, kEngine, object);
  count(call, object.record);
}

void close(Call& call) {
  const Object file = call.file();
  call.run(show_on(file));
  open_objects.forget_if([&](Word engine, Word) { return engine == call.engine(); });
  count(call, file.record);
}

void run_other(Call& call) {
  const Object file = call.file();
  call.run(show_on(file));
  count(call, file.record);
}

/// Returns the bytes of a text that the program passes or gets.
std::uint64_t size_of_text(const Call& call) { return call.pointer<const String>(2)->size; }

std::uint64_t bytes_of(const Call& call, const Variable* variable) {
  const std::uint64_t size = kSizes[static_cast<std::size_t>(call.function.type)];
  if (size == 0) return size_of_text(call);
  const TypeFunctions& type = call.library.of_type(call.function.type);
  if (call.op == trace::Op::write) return call.library.total_size(variable) * size;
  if (call.function.role == Role::selection && type.size_of != nullptr)
    return type.size_of(variable, call.pointer<const void>(3)) * size;
  return type.selection_size != nullptr ? type.selection_size(variable) * size : 0;
}

/// Notes the extents of a transfer.
void note_box(const Call& call, const Variable* variable, const Object& object) {
  const TypeFunctions& type = call.library.of_type(call.function.type);
  if (type.count == nullptr || call.library.free == nullptr) return;
  std::size_t* extents[3] = {};  // a std::vector
  type.count(extents, variable);
  Selection box{.points = 1};
  const auto rank = extents[1] - extents[0];
  if (rank <= datasets::kMostDimensions) {
    box.rank = static_cast<int>(rank);
    std::copy(extents[0], extents[1], box.box);
  }
  call.library.free(extents[0]);
  datasets::note_selection(object, call.op, box);
}

/// Returns the variable of a call that has succeeded; null: it is not known.
const Variable* variable_of(const Call& call) {
  if (call.function.role != Role::name) return call.pointer<const Variable>(1);
  const TypeFunctions& type = call.library.of_type(call.function.type);
  if (type.inquire == nullptr) return nullptr;
  void* const io = call.library.io_of(call.pointer<void>(0));
  return static_cast<const Variable*>(type.inquire(io, call.pointer<const void>(1)));
}

/// Looks a variable up, and writes its note.
Object describe(const Call& call, const Object& file, const Variable& variable) {
  base::Text<kLongestName> name;
  if (!variable.name.view().starts_with('/')) name.add('/');
  name.add(variable.name.view());
  const Object object{
      .record = datasets::record_of_dataset(trace::Layer::adios2, file.record, name.view()),
      .element = kSizes[static_cast<std::size_t>(call.function.type)]};
  if (object.record == nullptr) return object;
  base::Text<256> text;
  base::Json json(text);
  json.begin_object().member("note", "dataset").member("record", object.record->row);
  json.member("element", object.element).member("layout", class_of(call.engine())).end_object();
  if (text.complete()) datasets::note_once(json.view());
  return open_objects.store(call.engine(), reinterpret_cast<Word>(&variable) >> 4, object);
}

Object find(const Call& call, const Variable& variable) {
  const Object known = open_objects.find(call.engine(), reinterpret_cast<Word>(&variable) >> 4);
  if (known.record != nullptr) return known;
  const Object file = call.file();
  return file.record != nullptr ? describe(call, file, variable) : file;
}

bool is_deferred(const Call& call) {
  if (call.function.role == Role::span) return true;
  const auto mode = static_cast<std::uint32_t>(call[call.function.role == Role::selection ? 4 : 3]);
  return mode != kSync;
}

void transfer(Call& call) {
  call.run(show_on(call.file()));
  const Variable* variable = variable_of(call);
  const Object object = variable != nullptr ? find(call, *variable) : call.file();
  if (object.record == nullptr || variable == nullptr) return count(call, object.record);
  const bool noted = call.op == trace::Op::read ? object.has_noted_read : object.has_noted_write;
  if (!noted) {
    note_box(call, variable, object);
    open_objects.set_noted(call.engine(), reinterpret_cast<Word>(variable) >> 4, call.op);
  }
  count(call, object.record,
        {.bytes = bytes_of(call, variable), .is_nonblocking = is_deferred(call)});
}

void run(Call& call) {
  switch (call.function.role) {
    case Role::open:
      return open(call);
    case Role::close:
      return close(call);
    case Role::other:
    case Role::step:
      return run_other(call);
    default:
      return transfer(call);
  }
}

Word forward_step(void* real, const Word* words, std::size_t) {
  const auto limit = std::bit_cast<float>(static_cast<std::uint32_t>(words[2]));
  return reinterpret_cast<Word (*)(Word, Word, float)>(real)(words[0], words[1], limit);
}

}  // namespace

Word dispatch(SymbolId id, const Word* words, Word caller) {
  const Function& function = kFunctions[static_cast<std::size_t>(id)];
  Library& library = Library::of(caller);
  const std::size_t number = kFirstId + static_cast<std::size_t>(function.id);
  return datasets::dispatch<Call>(library, function, library.real(id), number, words, kFailed, run,
                                  function.role == Role::step ? forward_step : symbols::forward);
}

void fill(std::span<trace::FunctionInfo, trace::kMaxFunctions> table) {
  static_assert(kFirstId + kFunctionCount <= trace::kMaxFunctions);
  std::ranges::copy(kNames, table.begin() + kFirstId);
}

void after_fork() { static_cast<void>(open_objects.renew_records()); }

}  // namespace pario::adios2
