// What a program asks and sets of an open file, besides its data.
#include <cerrno>

#include "mpiio/file.hpp"
#include "mpiio/guarded.hpp"
#include "mpiio/implementations.hpp"
#include "mpiio/library.hpp"

namespace pario::mpiio {
namespace {

/// Collective: an error on all ranks where `value` differs.
Outcome same(File& file, const Call& call, std::uint64_t value, const char* what) {
  const auto status = file.shared->agree(value, what);
  return status.ok() ? Outcome{} : refuse(k(MPI_ERR_NOT_SAME), call, status.error().text());
}

Outcome check_writable(const File& file, const Call& call) {
  return file.mode.writable ? Outcome{} : refuse(k(MPI_ERR_READ_ONLY), call, file.path + " was opened to be read only");
}

using Change = base::Status (engine::SharedFile::*)(std::uint64_t);

Word change_size(const Call& call, Change change) {
  return on_file(call, [&](File& file) -> Outcome {
    Outcome outcome = check_writable(file, call);
    if (outcome.ok() && call.offset(1) < 0) outcome = refuse(k(MPI_ERR_ARG), call, "the size is negative");
    // All ranks come here, whatever they have found out: nobody waits for one that has left.
    const Outcome agreed = same(file, call, outcome.ok() ? call[1] : ~Word{0}, "size");
    if (!outcome.ok()) return outcome;
    return agreed.ok() ? outcome_of((file.shared.get()->*change)(call[1])) : agreed;
  });
}

}  // namespace

Outcome agree(const Call& call, File& file, const Outcome& mine) {
  const auto agreed = file.shared->agree(mine.ok() ? base::Status{} : base::Status(base::Error{.number = EINVAL, .operation = call.name}));
  if (!mine.ok() || agreed.ok()) return mine;
  return refuse(k(MPI_ERR_ARG), call, "another rank has wrong arguments: " + agreed.error().text());
}

Word set_size(const Call& call) { return change_size(call, &engine::SharedFile::resize); }

Word preallocate(const Call& call) { return change_size(call, &engine::SharedFile::preallocate); }

Word get_size(const Call& call) {
  return on_file(call, [&](File& file) -> Outcome {
    const auto size = file.shared->size();
    if (!size.ok()) return outcome_of(size.error());
    *call.pointer<std::int64_t>(1) = static_cast<std::int64_t>(*size);
    return {};
  });
}

Word get_group(const Call& call) {
  return on_file(call, [&](File& file) -> Outcome {
    const int result = lib().group_union(file.group, file.group, call.pointer<Word>(1));
    return result == 0 ? Outcome{} : refuse(k(MPI_ERR_GROUP), call, "the group cannot be copied");
  });
}

Word get_amode(const Call& call) {
  return on_file(call, [&](File& file) -> Outcome {
    *call.pointer<int>(1) = file.mode.amode;
    return {};
  });
}

Word sync(const Call& call) {
  return on_file(call, [&](File& file) -> Outcome { return outcome_of(file.shared->sync()); });
}

Word set_atomicity(const Call& call) {
  return on_file(call, [&](File& file) -> Outcome {
    const bool atomic = call.integer(1) != 0;
    Outcome outcome = same(file, call, atomic ? 1 : 0, "atomicity");
    if (outcome.ok()) file.shared->set_atomic(atomic);
    return outcome;
  });
}

Word get_atomicity(const Call& call) {
  return on_file(call, [&](File& file) -> Outcome {
    *call.pointer<int>(1) = file.shared->atomic() ? 1 : 0;
    return {};
  });
}

}  // namespace pario::mpiio
