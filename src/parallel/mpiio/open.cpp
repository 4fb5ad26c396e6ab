// Opening, closing and deleting.
#include <fcntl.h>

#include <cctype>
#include <cstdlib>

#include "core/base/base.hpp"
#include "parallel/mpiio/file.hpp"
#include "parallel/mpiio/guarded.hpp"
#include "parallel/mpiio/implementations.hpp"
#include "parallel/mpiio/info.hpp"
#include "parallel/mpiio/library.hpp"
#include "parallel/mpiio/mpiio.hpp"
#include "parallel/mpiio/requests.hpp"
#include "parallel/mpiio/view.hpp"

namespace pario::mpiio {
namespace {

Mode mode_of(int amode) {
  const bool both = (amode & k(MPI_MODE_RDWR)) != 0;
  return {.amode = amode,
          .readable = both || (amode & k(MPI_MODE_RDONLY)) != 0,
          .writable = both || (amode & k(MPI_MODE_WRONLY)) != 0,
          .sequential = (amode & k(MPI_MODE_SEQUENTIAL)) != 0,
          .append = (amode & k(MPI_MODE_APPEND)) != 0};
}

int flags_of(const Mode& mode) {
  int flags = mode.readable && mode.writable ? O_RDWR : mode.writable ? O_WRONLY : O_RDONLY;
  if (mode.amode & k(MPI_MODE_CREATE)) flags |= O_CREAT;
  if (mode.amode & k(MPI_MODE_EXCL)) flags |= O_EXCL;
  return flags;
}

Outcome check_amode(const Call& call, int amode) {
  const int all = k(MPI_MODE_RDONLY) | k(MPI_MODE_RDWR) | k(MPI_MODE_WRONLY) | k(MPI_MODE_CREATE) |
                  k(MPI_MODE_EXCL) | k(MPI_MODE_DELETE_ON_CLOSE) | k(MPI_MODE_UNIQUE_OPEN) |
                  k(MPI_MODE_SEQUENTIAL) | k(MPI_MODE_APPEND);
  const bool reads = amode & k(MPI_MODE_RDONLY), both = amode & k(MPI_MODE_RDWR),
             writes = amode & k(MPI_MODE_WRONLY);
  if (amode < 0 || (amode & ~all) != 0)
    return refuse(k(MPI_ERR_AMODE), call, "unknown bits in the access mode");
  if (reads + both + writes != 1)
    return refuse(k(MPI_ERR_AMODE), call,
                  "exactly one of MPI_MODE_RDONLY, RDWR and WRONLY must be given");
  if (reads && (amode & (k(MPI_MODE_CREATE) | k(MPI_MODE_EXCL))))
    return refuse(k(MPI_ERR_AMODE), call, "a file that is only read cannot be created");
  if (both && (amode & k(MPI_MODE_SEQUENTIAL)))
    return refuse(k(MPI_ERR_AMODE), call,
                  "MPI_MODE_SEQUENTIAL and MPI_MODE_RDWR exclude each other");
  return {};
}

Outcome check_communicator(const Call& call) {
  int inter = 0;
  if (lib().handle(call[0]) == h(MPI_COMM_NULL))
    return refuse(k(MPI_ERR_COMM), call, "the communicator is MPI_COMM_NULL");
  if (lib().comm_test_inter(call[0], &inter) != 0 || inter)
    return refuse(k(MPI_ERR_COMM), call, "intercommunicators have no files");
  return {};
}

/// Returns the absolute path: the program may change its directory while the file is open.
std::string absolute(const char* name) {
  const base::Path path(AT_FDCWD, name);
  return path.is_known() ? std::string(path.view()) : name;
}

/// The arguments that ranks compare before they open the file.
struct Ticket {
  int amode = 0, error_class = 0;
};

/// Collective: returns the same outcome on all ranks, an error if the arguments of one are wrong.
Outcome agree(comm::Comm& comm, const Call& call, const Outcome& mine) {
  const Ticket ticket{call.integer(2), mine.error_class};
  std::vector<Ticket> all(static_cast<std::size_t>(comm.size()));
  if (auto status = comm.allgather(&ticket, sizeof ticket, all.data()); !status.ok()) {
    if (*status.error().operation == 0) status.error().operation = call.name;
    return outcome_of(status.error());
  }
  if (!mine.ok()) return mine;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].error_class != 0)
      return refuse(all[rank].error_class, call,
                    "rank " + std::to_string(rank) + " has wrong arguments");
    if (all[rank].amode != all[0].amode)
      return refuse(
          k(MPI_ERR_NOT_SAME), call,
          "the access mode of rank " + std::to_string(rank) + " differs from that of rank 0");
  }
  return {};
}

unsigned permissions(const std::string& octal) {
  const auto value = static_cast<unsigned>(std::strtoul(octal.c_str(), nullptr, 8));
  return value != 0 ? value : 0666;
}

base::Result<std::unique_ptr<engine::SharedFile>> open_shared(
    const std::shared_ptr<comm::Comm>& comm, const std::string& path, const Mode& mode,
    Hints hints) {
  return engine::SharedFile::open(
      comm, {.path = path,
             .flags = flags_of(mode),
             .mode = permissions(hints.values.file_perm),
             .delete_on_close = (mode.amode & k(MPI_MODE_DELETE_ON_CLOSE)) != 0,
             .hints = hints.values,
             .requested = std::move(hints.requested),
             .rejected = std::move(hints.rejected)});
}

/// Moves both pointers to the end of the file, as rank 0 sees it: another program may append to it
/// at the same time. Collective.
Outcome go_to_end(const Call& call, OpenFile& file) {
  const auto size = file.shared->size();
  const Outcome outcome =
      mpiio::agree(call, file, size.ok() ? Outcome{} : outcome_of(size.error()));
  if (!outcome.ok()) return outcome;
  const auto end = file.shared->pointer().seek(*size);
  if (!end.ok()) return outcome_of(end.error());
  file.position = *end;
  return {};
}

Outcome open_file(const Call& call, OpenFile& file) {
  Outcome outcome = check_communicator(call);
  if (!outcome.ok()) return outcome;
  const auto* const name = call.pointer<const char>(1);
  if (name) file.path = absolute(without_driver(name));
  Hints hints = hints_for(file.path, call[3]);
  auto comm = engine::make_comm(call[0], file.path, hints.values);
  if (!comm.ok()) return outcome_of(comm.error());
  outcome = name ? check_amode(call, call.integer(2))
                 : refuse(k(MPI_ERR_BAD_FILE), call, "the file name is null");
  if (outcome.ok()) outcome = check(hints, call);
  outcome = agree(**comm, call, outcome);
  if (!outcome.ok()) return outcome;
  file.mode = mode_of(call.integer(2));
  auto shared = open_shared(*comm, file.path, file.mode, std::move(hints));
  if (!shared.ok()) return outcome_of(shared.error());
  file.shared = std::move(*shared);
  lib().comm_group(call[0], &file.group);
  file.view = default_view();
  return file.mode.append ? go_to_end(call, file) : Outcome{};
}

Outcome close_file(OpenFile& file) {
  finish_split(file);
  const auto status = file.shared->close();
  lib().group_free(&file.group);
  release_info(file);
  release_types(file.view);
  return outcome_of(status);
}

}  // namespace

const char* without_driver(const char* name) {
  std::size_t letters = 0;
  while (std::isalnum(static_cast<unsigned char>(name[letters]))) ++letters;
  return letters > 1 && name[letters] == ':' ? name + letters + 1 : name;
}

Word open(const Call& call) {
  auto file = std::make_shared<OpenFile>();
  const Outcome outcome = open_file(call, *file);
  *call.pointer<Word>(4) = h(MPI_FILE_NULL);
  if (!outcome.ok()) return raise(nullptr, outcome);
  file->handler = default_handler();
  retain_handler(file->handler);
  *call.pointer<Word>(4) = add(std::move(file));
  return 0;
}

Word close(const Call& call) {
  Word* const handle = call.pointer<Word>(0);
  const auto file = handle ? find(*handle) : nullptr;
  if (!file) return raise(nullptr, bad_handle(call));
  const Outcome outcome = close_file(*file);
  const Word result = raise(file.get(), outcome);
  erase(*handle);
  release_handler(file->handler);
  *handle = h(MPI_FILE_NULL);
  return result;
}

Word remove(const Call& call) {
  return raise(nullptr, outcome_of(engine::remove(without_driver(call.pointer<const char>(0)))));
}

void report_open_files() {
  const auto files = open_files();
  if (files.empty()) return;
  base::Text<1024> text;
  text.add(files.size())
      .add(" file(s) of MPI-IO left open at MPI_Finalize, MPI_File_close was not called: ")
      .add(files.front()->path);
  trace::message(text.view());
}

}  // namespace pario::mpiio
