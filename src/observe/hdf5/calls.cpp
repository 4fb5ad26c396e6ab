// Forwards and records one call.
#include <algorithm>

#include "observe/hdf5/dataset.hpp"

namespace pario::hdf5 {
namespace {

constexpr Word kFailed = ~Word{0};
constexpr Word kDefaultList = 0;           // H5P_DEFAULT
constexpr int kCollective = 1;             // H5FD_MPIO_COLLECTIVE
constexpr std::size_t kMostDatasets = 64;  // of a call on several datasets

using datasets::count;
using datasets::show_on;

/// A call of the program, from its arguments to its row in the log.
struct Call : datasets::Call {
  Library& library;
  const Function& function;

  bool returns_object() const { return function.role <= Role::open_object; }
  /// Runs it, and notes if it failed.
  void carry_out(trace::CallStart shown = {}) {
    run(shown);
    failed =
        returns_object() ? static_cast<std::int64_t>(result) < 0 : static_cast<int>(result) < 0;
  }
};

void open_file(Call& call) {
  const auto* name = reinterpret_cast<const char*>(call[0]);
  call.carry_out({.path = name != nullptr ? name : ""});
  if (call.failed) return count(call, name != nullptr ? objects::record_of_file(name) : nullptr);
  count(call, objects::enter_file(call.library, call.result).record);
}

void open_object(Call& call) {
  const Role role = call.function.role;
  const auto* name =
      role == Role::create_unnamed ? nullptr : reinterpret_cast<const char*>(call[1]);
  call.carry_out(show_on(objects::find_known(call.library, call[0])));
  if (call.failed) return count(call, objects::find_known(call.library, call[0]).record);
  const Object object =
      objects::enter(call.library, call.result, call[0], name, role == Role::create_object);
  if (object.element == 0) call.op = trace::Op::other;  // a group
  count(call, object.record);
}

void close(Call& call) {
  const Object object = objects::find_known(call.library, call[0]);
  // Programs release dataspaces, types and other objects by thousands.
  if (object.record == nullptr || call.library.references(call[0]) > 1) {
    call.forward_unrecorded();
    return;
  }
  call.carry_out(show_on(object));
  objects::forget(call.library, call[0]);
  count(call, object.record);
}

void run_other(Call& call) {
  call.carry_out(show_on(objects::find_known(call.library, call[0])));
  const Object object = call.failed ? objects::find_known(call.library, call[0])
                                    : objects::find(call.library, call[0]);
  count(call, object.record);
}

bool is_collective(const Library& library, Word list) {
  int mode = 0;
  return list != kDefaultList && library.transfer_mode != nullptr &&
         library.transfer_mode(list, &mode) >= 0 && mode == kCollective;
}

/// Counts a read or write of one dataset of a call.
void count_transfer(const Call& call, Word dataset, Word memory, Word file, Word list,
                    std::uint64_t datasets) {
  if (call.failed) return count(call, objects::find_known(call.library, dataset).record);
  const Object object = objects::find(call.library, dataset);
  if (object.record == nullptr) return count(call, nullptr);
  const Selection selection = selection_of(call.library, dataset, object, call.op, memory, file);
  count(call, object.record,
        {.bytes = selection.points * object.element,
         .chunks = selection.chunks,
         .is_collective = is_collective(call.library, list),
         .datasets = datasets});
}

void transfer(Call& call) {
  call.carry_out(show_on(objects::find_known(call.library, call[0])));
  count_transfer(call, call[0], call[2], call[3], call[4], 1);
}

void transfer_several(Call& call) {
  const auto array = [&](int index) { return reinterpret_cast<const Word*>(call[index]); };
  const auto number = static_cast<std::size_t>(call[0]);
  call.carry_out();
  for (std::size_t i = 0; i < std::min(number, kMostDatasets); ++i)
    count_transfer(call, array(1)[i], array(3)[i], array(4)[i], call[5], number);
}

void transfer_chunk(Call& call) {
  const bool writes = call.function.role == Role::write_chunk;
  const Object known = objects::find_known(call.library, call[0]);
  call.carry_out(show_on(known));
  if (call.failed) return count(call, known.record);
  const Object object = objects::find(call.library, call[0]);
  std::uint64_t bytes = writes ? call[4] : 0;
  if (!writes && call.library.stored_chunk_size != nullptr)
    call.library.stored_chunk_size(call[0], reinterpret_cast<const std::uint64_t*>(call[2]),
                                   &bytes);
  count(call, object.record,
        {.bytes = bytes, .chunks = 1, .is_collective = is_collective(call.library, call[1])});
}

void run(Call& call) {
  switch (call.function.role) {
    case Role::open_file:
      return open_file(call);
    case Role::create_object:
    case Role::create_unnamed:
    case Role::open_object:
      return open_object(call);
    case Role::close:
      return close(call);
    case Role::other:
      return run_other(call);
    case Role::transfer:
      return transfer(call);
    case Role::transfer_several:
      return transfer_several(call);
    case Role::read_chunk:
    case Role::write_chunk:
      return transfer_chunk(call);
    case Role::end:
      objects::forget_all();
      call.forward_unrecorded();
  }
}

}  // namespace

Word dispatch(Id id, const Word* words, Word caller) {
  const Function& function = kFunctions[static_cast<std::size_t>(id)];
  Library& library = Library::of(caller);
  const std::size_t number = kFirstId + static_cast<std::size_t>(id);
  return datasets::dispatch<Call>(library, function, library.real(id), number, words, kFailed, run);
}

void fill(std::span<trace::FunctionInfo, trace::kMaxFunctions> table) {
  static_assert(kFirstId + kFunctionCount <= trace::kMaxFunctions);
  for (std::size_t i = 0; i < kFunctionCount; ++i)
    table[kFirstId + i] = {kFunctions[i].name, "hdf5", kFunctions[i].op};
}

void after_fork() {
  objects::renew_records();
  datasets::forget_notes();
}

}  // namespace pario::hdf5
