#include "observe/pmpi/lifetime.hpp"

#include <cctype>

#include "core/base/base.hpp"
#include "observe/pmpi/communicators.hpp"
#include "observe/pmpi/weak.hpp"

namespace pario::pmpi {
namespace {

/// Writes a note of a moment that is nearly the same on all ranks.
void note_clock(const Library& mpi) {
  if (mpi.barrier(mpi.comm_world) != 0) return;
  const std::uint64_t moment = base::monotonic_ns();
  base::Text<128> text;
  base::Json json(text);
  json.begin_object()
      .member("note", "clock")
      .member("kind", "barrier")
      .member("mono_ns", moment)
      .end_object();
  trace::note(json.view());
}

/// Adds the first line of the MPI's description, with single blanks: all of Open MPI's description,
/// the version of MPICH's.
void add_first_line(base::TextBuffer& out, std::string_view text) {
  bool blank = false;
  for (const char c : text.substr(0, text.find('\n'))) {
    if (!blank || !std::isspace(static_cast<unsigned char>(c)))
      out.add(std::isspace(static_cast<unsigned char>(c)) ? ' ' : c);
    blank = std::isspace(static_cast<unsigned char>(c));
  }
}

void note_mpi(const Library& mpi) {
  static char description[8192];  // the largest MPI_MAX_LIBRARY_VERSION_STRING
  int length = 0, version = 0, subversion = 0;
  mpi.get_library_version(description, &length);
  mpi.get_version(&version, &subversion);
  base::Text<1024> library;
  add_first_line(library, description);
  base::Text<16> standard;
  standard.add(version).add('.').add(subversion);
  const auto& process = trace::process();
  base::Text<2048> text;
  base::Json json(text);
  json.begin_object()
      .member("note", "mpi")
      .member("library", library.view())
      .member("version", standard.view());
  json.member("rank", process.mpi_rank - 1)
      .member("size", process.mpi_size)
      .member("thread", mpi.thread_level())
      .end_object();
  trace::note(json.view());
}

}  // namespace

void after_init(const Invocation& call) {
  const Library& mpi = call.mpi;
  restore_weak_references();
  set_world(mpi);
  const auto world = known_communicator(mpi.comm_world);
  auto& process = trace::process();
  process.mpi_rank = static_cast<std::uint64_t>(world->rank) + 1;
  process.mpi_size = static_cast<std::uint64_t>(world->size);
  process.mpi_init = call.end;
  note_mpi(mpi);
  mpi.barrier(mpi.comm_world);
  mpi.barrier(mpi.comm_world);  // the first ones also set up connections
  note_clock(mpi);
}

void before_finalize(const Library& mpi, std::uint64_t now) {
  trace::process().mpi_finalize = now;
  if (known_communicator(mpi.comm_world)) note_clock(mpi);
}

}  // namespace pario::pmpi
