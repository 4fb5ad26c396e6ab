// Queries and changes of an open file, except its data and views.
#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>

#include "parallel/mpiio/file.hpp"
#include "parallel/mpiio/guarded.hpp"
#include "parallel/mpiio/implementations.hpp"
#include "parallel/mpiio/library.hpp"

namespace pario::mpiio {
namespace {

Outcome check_writable(const OpenFile& file, const Call& call) {
  return file.mode.writable
             ? Outcome{}
             : refuse(k(MPI_ERR_READ_ONLY), call, file.path + " was opened to be read only");
}

using Change = base::Status (engine::SharedFile::*)(std::uint64_t);

Word change_size(const Call& call, Change change) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    Outcome outcome = check_writable(file, call);
    if (outcome.ok() && call.offset(1) < 0)
      outcome = refuse(k(MPI_ERR_ARG), call, "the size is negative");
    outcome = agree(call, file, outcome, call[1]);
    return outcome.ok() ? outcome_of((file.shared.get()->*change)(call[1])) : outcome;
  });
}

/// True for functions that move no data and in which ranks wait for each other.
bool is_collective(std::string_view name) {
  constexpr std::string_view kNames[] = {"MPI_File_close",         "MPI_File_set_size",
                                         "MPI_File_preallocate",   "MPI_File_sync",
                                         "MPI_File_set_atomicity", "MPI_File_set_info",
                                         "MPI_File_set_view",      "MPI_File_seek_shared"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

}  // namespace

Outcome bad_handle(const Call& call) {
  const Outcome outcome = refuse(k(MPI_ERR_FILE), call, "this is no open file");
  const bool moves_data = call.kind.collective && call.kind.completion == Completion::blocking;
  if (!moves_data && !is_collective(call.name)) return outcome;
  std::optional<plan::Direction>
      direction;  // none: the file pointer is shared, and the ranks meet for it first
  if (moves_data && call.kind.pointer != Pointer::shared) direction = call.kind.direction;
  for (const auto& file : open_files())
    file->shared->miss(direction, error_of(outcome, call), call.name);
  return outcome;
}

Outcome agree(const Call& call, OpenFile& file, const Outcome& mine, std::uint64_t hash) {
  const base::Status status = mine.ok() ? base::Status() : error_of(mine, call);
  return outcome_of_all(call, mine, file.shared->agree(hash, status, call.name));
}

Outcome outcome_of_all(const Call& call, const Outcome& mine, const base::Status& agreed) {
  if (!mine.ok() || agreed.ok()) return mine;
  const base::Error& error = agreed.error();
  return error.number == EINVAL ? refuse(k(MPI_ERR_NOT_SAME), call, error.text())
                                : outcome_of(error);
}

Word set_size(const Call& call) { return change_size(call, &engine::SharedFile::resize); }

Word preallocate(const Call& call) { return change_size(call, &engine::SharedFile::preallocate); }

Word get_size(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    const auto size = file.shared->size();
    if (!size.ok()) return outcome_of(size.error());
    *call.pointer<std::int64_t>(1) = static_cast<std::int64_t>(*size);
    return {};
  });
}

Word get_group(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    const int result = lib().group_union(file.group, file.group, call.pointer<Word>(1));
    return result == 0 ? Outcome{} : refuse(k(MPI_ERR_GROUP), call, "the group cannot be copied");
  });
}

Word get_amode(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    *call.pointer<int>(1) = file.mode.amode;
    return {};
  });
}

Word sync(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome { return outcome_of(file.shared->sync()); });
}

Word set_atomicity(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    const bool atomic = call.integer(1) != 0;
    Outcome outcome = agree(call, file, {}, atomic ? 1 : 0);
    if (outcome.ok()) outcome = outcome_of(file.shared->set_atomic(atomic));
    return outcome;
  });
}

Word get_atomicity(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    *call.pointer<int>(1) = file.shared->atomic() ? 1 : 0;
    return {};
  });
}

}  // namespace pario::mpiio
