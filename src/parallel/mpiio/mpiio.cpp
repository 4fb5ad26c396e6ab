#include "parallel/mpiio/mpiio.hpp"

#include <unistd.h>

#include <cstdlib>

#include "core/hints/hints.hpp"
#include "parallel/mpiio/datatypes.hpp"
#include "parallel/mpiio/file.hpp"
#include "parallel/mpiio/implementations.hpp"
#include "parallel/mpiio/library.hpp"

namespace pario::mpiio {
namespace {

bool read_hint() {
  hints::HintSet chosen = hints::defaults();
  hints::read_environment(chosen, environ, [](std::string_view) {});
  return chosen.mpiio;
}

/// True if tests divide one node into several (PARIO_NODES, or MPICH's variable).
bool pretends_nodes() {
  return std::getenv("PARIO_NODES") != nullptr || std::getenv("MPIR_CVAR_NUM_CLIQUES") != nullptr;
}

// Defines each function twice: the plain one and its _c form.
#define PARIO_ENTRY(name, implementation, form, wide, ...)                              \
  Word name##_##form(Word a0, Word a1, Word a2, Word a3, Word a4, Word a5) {            \
    const Word words[] = {a0, a1, a2, a3, a4, a5};                                      \
    return implementation(Call{"MPI_" #name, words, wide __VA_OPT__(, {__VA_ARGS__})}); \
  }
#define PARIO_ENTRIES(name, implementation, ...)                            \
  PARIO_ENTRY(name, implementation, plain, false __VA_OPT__(, __VA_ARGS__)) \
  PARIO_ENTRY(name, implementation, large, true __VA_OPT__(, __VA_ARGS__))
#define PARIO_FILE(name, implementation) PARIO_ENTRIES(name, implementation)
#define PARIO_DATA(name, direction, pointer, collective, completion)                      \
  PARIO_ENTRIES(name, transfer, plan::Direction::direction, Pointer::pointer, collective, \
                Completion::completion)
#define PARIO_END(name, direction, pointer, collective, completion)                           \
  PARIO_ENTRIES(name, end_transfer, plan::Direction::direction, Pointer::pointer, collective, \
                Completion::completion)
#include "parallel/mpiio/files.def"
#undef PARIO_FILE
#undef PARIO_DATA
#undef PARIO_END

struct Entry {
  std::string_view name;
  Word (*plain)(Word, Word, Word, Word, Word, Word);
  Word (*large)(Word, Word, Word, Word, Word, Word);
};

#define PARIO_ROW(name, ...) {#name, name##_plain, name##_large},
#define PARIO_FILE PARIO_ROW
#define PARIO_DATA PARIO_ROW
#define PARIO_END PARIO_ROW
constexpr Entry kEntries[] = {
#include "parallel/mpiio/files.def"
};
#undef PARIO_FILE
#undef PARIO_DATA
#undef PARIO_END

}  // namespace

bool is_enabled() {
  static const bool chosen = read_hint();
  return chosen;
}

/// Reads the number of ranks on this node from the launcher's variables: Hydra and Open MPI give
/// two numbers of ranks, Slurm a number of nodes.
bool wants_threads() {
  constexpr const char* pairs[][2] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                      {"PMI_SIZE", "MPI_LOCALNRANKS"}};
  for (const auto& [all, local] : pairs) {
    const char *const ranks = std::getenv(all), *const here = std::getenv(local);
    if (ranks && here) return std::string_view(ranks) != here || pretends_nodes();
  }
  const char* const nodes = std::getenv("SLURM_STEP_NUM_NODES");
  return (nodes && std::strtol(nodes, nullptr, 10) > 1) || pretends_nodes();
}

std::string layout_text(mpi::Word type, std::size_t limit) { return layout_of(type).text(limit); }

void after_init() { comm::prepare_finalize(); }

void before_communication(bool ends) {
  engine::write_kept_writes(ends ? engine::Reader::all : engine::Reader::ranks);
}

void after_communication() { engine::note_event(); }

void after_finalize() { report_open_files(); }

void* replacement(std::string_view name, bool large) {
  for (const auto& entry : kEntries) {
    if (entry.name == name) return reinterpret_cast<void*>(large ? entry.large : entry.plain);
  }
  return nullptr;
}

}  // namespace pario::mpiio
