// Forwards and records one call.
#include "observe/netcdf/variables.hpp"

namespace pario::netcdf {
namespace {

using datasets::count;
using datasets::Object;
using datasets::Selection;
using datasets::show_on;

constexpr Word kFailed = static_cast<Word>(-33);  // NC_EBADID
constexpr int kCollective = 1;                    // NC_COLLECTIVE
constexpr const char* kCategories[] = {"netcdf", "pnetcdf"};

/// A call of the program, from its arguments to its row in the log.
struct Call : datasets::Call {
  Library& library;
  const Function& function;

  int file() const { return static_cast<int>(words[0]); }
  int variable() const { return static_cast<int>(words[1]); }
  /// Runs it, and notes if it failed.
  void carry_out(trace::CallStart shown = {}) {
    run(shown);
    failed = static_cast<int>(result) != 0;
  }
};

void open(Call& call, int name_index, int file_index) {
  const auto* name = call.pointer<const char>(name_index);
  call.carry_out({.path = name != nullptr ? name : ""});
  const auto* file = call.pointer<const int>(file_index);
  if (!call.failed && file != nullptr) {
    variables::forget_file(call.library, *file);
    if (const Object object = variables::find_file(call.library, *file); object.record != nullptr)
      return count(call, object.record);
  }
  count(call, name != nullptr ? datasets::record_of_file(call.library.layer(), name) : nullptr);
}

void close(Call& call) {
  const Object object = variables::find_file(call.library, call.file());
  variables::note_shapes(call.library, call.file());
  call.carry_out(show_on(object));
  variables::forget_file(call.library, call.file());
  count(call, object.record);
}

void run_other(Call& call) {
  const Object object = variables::find_file(call.library, call.file());
  call.carry_out(show_on(object));
  if (call.function.role == Role::access && !call.failed)
    variables::set_collective(call.library, call.file(), call.variable(),
                              static_cast<int>(call[2]) == kCollective);
  count(call, object.record);
}

void transfer(Call& call) {
  const Object known = variables::find_known(call.library, call.file(), call.variable());
  call.carry_out(show_on(known));
  if (call.failed) {
    const Object file = variables::find_file(call.library, call.file());
    return count(call, known.record != nullptr ? known.record : file.record);
  }
  const Object object = variables::find(call.library, call.file(), call.variable());
  if (object.record == nullptr) return count(call, nullptr);
  const Selection selection =
      variables::selection_of(call.library, call, call.function.role, object);
  count(call, object.record,
        {.bytes = selection.points * object.element,
         .chunks = selection.chunks,
         .is_collective = (call.function.how & kAll) != 0 || object.is_collective,
         .is_nonblocking = (call.function.how & kNonblocking) != 0});
}

void run(Call& call) {
  switch (call.function.role) {
    case Role::create_at_2:
    case Role::open_at_2:
      return open(call, 0, 2);
    case Role::open_at_3:
      return open(call, 0, 3);
    case Role::create_at_4:
    case Role::open_at_4:
      return open(call, 0, 4);
    case Role::create_second:
    case Role::open_second:
      return open(call, 1, 4);
    case Role::close:
      return close(call);
    case Role::other:
    case Role::access:
      return run_other(call);
    default:
      return transfer(call);
  }
}

}  // namespace

Word dispatch(Id id, SymbolId symbol, const Word* words, Word caller) {
  const Function& function = kFunctions[static_cast<std::size_t>(id)];
  Library& library = Library::of(function.kind, caller);
  const std::size_t number = kFirstId + static_cast<std::size_t>(id);
  return datasets::dispatch<Call>(library, function, library.real(symbol), number, words, kFailed,
                                  run);
}

void fill(std::span<trace::FunctionInfo, trace::kMaxFunctions> table) {
  static_assert(kFirstId + kFunctionCount <= trace::kMaxFunctions);
  for (std::size_t i = 0; i < kFunctionCount; ++i)
    table[kFirstId + i] = {kFunctions[i].name, kCategories[static_cast<int>(kFunctions[i].kind)],
                           kFunctions[i].op};
}

void after_fork() { variables::renew_records(); }

}  // namespace pario::netcdf
