#include "parallel/mpiio/view.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "parallel/mpiio/guarded.hpp"
#include "parallel/mpiio/implementations.hpp"
#include "parallel/mpiio/info.hpp"
#include "parallel/mpiio/library.hpp"

namespace pario::mpiio {
namespace {

/// Checks the rules of MPI that hold for etypes and file types.
Outcome check_type(const Call& call, const OpenFile& file, const pattern::TypeMap& type) {
  if (type.size() != 0 && type.true_lower() < 0)
    return refuse(k(MPI_ERR_IO), call, "the displacements of a type of the file are negative");
  if (!type.monotonic())
    return refuse(k(MPI_ERR_IO), call, "the displacements of a type of the file decrease");
  if (file.mode.writable && type.overlapping())
    return refuse(k(MPI_ERR_IO), call, "a type of the file overlaps with itself");
  return {};
}

Outcome check_types(const Call& call, const OpenFile& file, const pattern::TypeMap& etype,
                    const pattern::TypeMap& filetype) {
  if (etype.size() == 0 && filetype.size() != 0)
    return refuse(k(MPI_ERR_TYPE), call, "the elementary type has no data");
  if (etype.size() != 0 && filetype.size() % etype.size() != 0)
    return refuse(k(MPI_ERR_ARG), call, "the file type does not consist of whole elementary types");
  const Outcome outcome = check_type(call, file, etype);
  return outcome.ok() ? check_type(call, file, filetype) : outcome;
}

Outcome check_arguments(const Call& call, const OpenFile& file) {
  const bool current = call.offset(1) == k(MPI_DISPLACEMENT_CURRENT);
  const auto* name = call.pointer<const char>(4);
  if (file.mode.sequential && !current)
    return refuse(k(MPI_ERR_ARG), call,
                  "a file opened with MPI_MODE_SEQUENTIAL takes MPI_DISPLACEMENT_CURRENT only");
  // The constant is -1 in the MPI ABI.
  if (!file.mode.sequential && call.offset(1) < 0)
    return refuse(k(MPI_ERR_ARG), call,
                  "the displacement is negative; MPI_DISPLACEMENT_CURRENT is for files opened with "
                  "MPI_MODE_SEQUENTIAL");
  if (lib().handle(call[2]) == h(MPI_DATATYPE_NULL) ||
      lib().handle(call[3]) == h(MPI_DATATYPE_NULL))
    return refuse(k(MPI_ERR_TYPE), call, "a datatype is MPI_DATATYPE_NULL");
  if (!name || !representation(name))
    return refuse(k(MPI_ERR_UNSUPPORTED_DATAREP), call,
                  std::string("data representation \"") + (name ? name : "") + "\" is not known");
  return {};
}

/// Returns MPI_DISPLACEMENT_CURRENT: the byte at which the shared pointer is.
base::Result<std::uint64_t> current_displacement(OpenFile& file) {
  const auto shared = file.shared->pointer().position();
  if (!shared.ok()) return shared.error();
  return file.view.bytes.offset_of(*shared);
}

Outcome make_view(const Call& call, OpenFile& file, View& view) {
  Outcome outcome = check_arguments(call, file);
  if (!outcome.ok()) return outcome;
  if (!is_committed(call[2]) || !is_committed(call[3]))
    return refuse(k(MPI_ERR_TYPE), call, "a datatype is not committed");
  view.representation = representation(call.pointer<const char>(4));
  view.etype = call[2], view.filetype = call[3];
  const auto etype = layout_in_file(call[2], *view.representation),
             filetype = layout_in_file(call[3], *view.representation);
  outcome = check_types(call, file, etype, filetype);
  if (!outcome.ok()) return outcome;
  view.displacement = call.offset(1);
  if (file.mode.sequential) {
    const auto current = current_displacement(file);
    if (!current.ok()) return outcome_of(current.error());
    view.displacement = static_cast<std::int64_t>(*current);
  }
  view.bytes = {static_cast<std::uint64_t>(view.displacement),
                std::max<std::uint64_t>(etype.size(), 1), filetype};
  return {};
}

/// Collective, with pario_check: checks that representation and extent of the elementary type are
/// equal on all ranks.
Outcome check_same(const Call& call, OpenFile& file, const View& view) {
  if (!view.representation || !file.shared->hints().pario_check) return {};
  const auto extent = layout_in_file(view.etype, *view.representation).extent();
  return agree(call, file, {},
               std::hash<std::string>{}(view.representation->name + std::to_string(extent)));
}

/// Collective: checks the arguments of all ranks, sets the hints, and resets the shared pointer.
/// With MPI_MODE_SEQUENTIAL, it first waits for all ranks: they may still move the pointer, at
/// which the view begins.
Outcome accept(const Call& call, OpenFile& file, View& view) {
  Outcome outcome = file.mode.sequential ? agree(call, file, {}) : Outcome{};
  if (!outcome.ok()) return outcome;
  outcome = make_view(call, file, view);
  const Hints hints = hints_on_top(file.shared->hints(), file.path, call[5]);
  if (outcome.ok()) outcome = check(hints, call);
  const base::Status mine = outcome.ok() ? base::Status() : error_of(outcome, call);
  outcome = outcome_of_all(call, outcome, file.shared->begin_view(hints.values, mine, call.name));
  return outcome.ok() ? check_same(call, file, view) : outcome;
}

void install(OpenFile& file, View view) {
  view.etype = retain_type(view.etype);
  view.filetype = retain_type(view.filetype);
  const std::lock_guard lock(file.mutex);
  release_types(file.view);
  file.view = std::move(view);
  file.position = 0;
}

Outcome check_pointers(const Call& call, const OpenFile& file) {
  if (!file.mode.sequential) return {};
  return refuse(k(MPI_ERR_UNSUPPORTED_OPERATION), call,
                "the file was opened with MPI_MODE_SEQUENTIAL");
}

/// True if accesses change the destination of MPI_File_seek_shared: those of other ranks, or those
/// of another program, so that ranks may compute different ones.
bool depends_on_accesses(int whence) {
  return whence == k(MPI_SEEK_CUR) || whence == k(MPI_SEEK_END);
}

/// Computes the destination of MPI_File_seek and seek_shared, in etypes.
Outcome destination(const Call& call, OpenFile& file, std::uint64_t current,
                    std::uint64_t& position) {
  const int whence = call.integer(2);
  const auto etype = file.view.etype_size();
  std::uint64_t origin = 0;
  if (whence == k(MPI_SEEK_CUR)) {
    origin = current;
  } else if (whence == k(MPI_SEEK_END)) {
    const auto end = end_of(file);
    if (!end.ok()) return outcome_of(end.error());
    origin = *end;
  } else if (whence != k(MPI_SEEK_SET)) {
    return refuse(k(MPI_ERR_ARG), call, "whence is none of MPI_SEEK_SET, CUR and END");
  }
  std::int64_t etypes = 0, bytes = 0;
  if (__builtin_add_overflow(static_cast<std::int64_t>(origin / etype), call.offset(1), &etypes) ||
      __builtin_mul_overflow(etypes, etype, &bytes))
    return refuse(k(MPI_ERR_ARG), call, "the offset is too large");
  if (etypes < 0)
    return refuse(k(MPI_ERR_ARG), call, "the offset lies before the beginning of the view");
  position = static_cast<std::uint64_t>(bytes);
  return {};
}

}  // namespace

View default_view() {
  return {.displacement = 0,
          .etype = h(MPI_BYTE),
          .filetype = h(MPI_BYTE),
          .representation = &native(),
          .bytes = {}};
}

void release_types(View& view) {
  release_type(view.etype);
  release_type(view.filetype);
  view.etype = view.filetype = 0;
}

bool can_reach(const pattern::FileView& view, std::uint64_t position) {
  const pattern::TypeMap& type = view.filetype;
  std::int64_t end = 0;  // of the data of the copy that contains the byte
  return type.size() == 0 ||
         (!__builtin_mul_overflow(position / type.size(), type.extent(), &end) &&
          !__builtin_add_overflow(end, type.true_lower(), &end) &&
          !__builtin_add_overflow(end, type.true_extent(), &end) &&
          !__builtin_add_overflow(end, view.displacement, &end));
}

base::Result<std::uint64_t> end_of(OpenFile& file) {
  const auto size = file.shared->size();
  if (!size.ok()) return size.error();
  if (file.view.bytes.filetype.size() == 0) return std::uint64_t{0};
  return base::round_up(file.view.bytes.position_of(*size), file.view.etype_size());
}

Word set_view(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    View view;
    Outcome outcome = accept(call, file, view);
    if (outcome.ok()) install(file, std::move(view));
    return outcome;
  });
}

Word get_view(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    const std::lock_guard lock(file.mutex);
    *call.pointer<std::int64_t>(1) = file.view.displacement;
    lib().set_handle_at(call[2], 0, retain_type(file.view.etype));
    lib().set_handle_at(call[3], 0, retain_type(file.view.filetype));
    std::strcpy(call.pointer<char>(4), file.view.representation->name.c_str());
    return {};
  });
}

Word get_type_extent(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    if (lib().handle(call[1]) == h(MPI_DATATYPE_NULL))
      return refuse(k(MPI_ERR_TYPE), call, "the datatype is MPI_DATATYPE_NULL");
    *call.pointer<std::int64_t>(2) = layout_in_file(call[1], *file.view.representation).extent();
    return {};
  });
}

Word get_byte_offset(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    Outcome outcome = check_pointers(call, file);
    if (!outcome.ok()) return outcome;
    if (call.offset(1) < 0) return refuse(k(MPI_ERR_ARG), call, "the offset is negative");
    const std::lock_guard lock(file.mutex);
    std::uint64_t position = 0;
    if (__builtin_mul_overflow(call[1], file.view.etype_size(), &position) ||
        !can_reach(file.view.bytes, position))
      return refuse(k(MPI_ERR_ARG), call, "the offset lies behind the end of the largest file");
    *call.pointer<std::int64_t>(2) = static_cast<std::int64_t>(file.view.bytes.offset_of(position));
    return {};
  });
}

Word seek(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    Outcome outcome = check_pointers(call, file);
    const std::lock_guard lock(file.mutex);
    return outcome.ok() ? destination(call, file, file.position, file.position) : outcome;
  });
}

Word get_position(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    Outcome outcome = check_pointers(call, file);
    if (!outcome.ok()) return outcome;
    const std::lock_guard lock(file.mutex);
    *call.pointer<std::int64_t>(1) =
        static_cast<std::int64_t>(file.position / file.view.etype_size());
    return {};
  });
}

Word seek_shared(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    std::uint64_t position = 0;
    const std::uint64_t arguments = call[1] ^ static_cast<std::uint64_t>(call.integer(2)) << 48;
    Outcome outcome = check_pointers(call, file);
    if (outcome.ok() && depends_on_accesses(call.integer(2))) {
      outcome = agree(call, file, {}, arguments);  // other ranks may still be in their accesses
      if (!outcome.ok()) return outcome;
    }
    const auto current = file.shared->pointer().position();
    if (outcome.ok() && !current.ok()) outcome = outcome_of(current.error());
    if (outcome.ok()) outcome = destination(call, file, *current, position);
    outcome = agree(call, file, outcome, arguments);
    if (!outcome.ok()) return outcome;
    const auto agreed = file.shared->pointer().seek(position);
    return agreed.ok() ? Outcome{} : outcome_of(agreed.error());
  });
}

Word get_position_shared(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    Outcome outcome = check_pointers(call, file);
    if (!outcome.ok()) return outcome;
    const auto position = file.shared->pointer().position();
    if (!position.ok()) return outcome_of(position.error());
    *call.pointer<std::int64_t>(1) = static_cast<std::int64_t>(*position / file.view.etype_size());
    return {};
  });
}

}  // namespace pario::mpiio
