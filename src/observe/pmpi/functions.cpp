#include "observe/pmpi/functions.hpp"

#include "observe/pmpi/pmpi.hpp"

namespace pario::pmpi {
namespace {

using enum Counts;
using trace::Op;

constexpr Shape none{};
constexpr Shape buffer{.moved = {0, 1, 2}};
constexpr Shape send{.moved = {0, 1, 2}, .peer = 3, .tag = 4};
constexpr Shape recv{.moved = {0, 1, 2}, .peer = 3, .tag = 4, .status = 6};
constexpr Shape probe{.peer = 0, .tag = 1};
constexpr Shape mprobe{.peer = 0, .tag = 1, .status = 4};
constexpr Shape reduce{.moved = {-1, 2, 3}};
constexpr Shape reduce_scatter{.moved = {-1, 2, 3, per_rank}};
constexpr Shape reduce_scatter_block{.moved = {-1, 2, 3}, .times_size = true};
constexpr Shape gather{.moved = {0, 1, 2}, .in_place = {3, 4, 5}};
constexpr Shape gatherv{.moved = {0, 1, 2}};
constexpr Shape allgatherv{.moved = {0, 1, 2}, .in_place = {3, 4, 6, own}};
constexpr Shape scatter{.moved = {3, 4, 5}, .in_place = {0, 1, 2}};
constexpr Shape scatterv{.moved = {4, 5, 6}};
constexpr Shape alltoall{.moved = {0, 1, 2}, .in_place = {3, 4, 5}, .times_size = true};
constexpr Shape alltoallv{.moved = {0, 1, 3, per_rank}, .in_place = {4, 5, 7, per_rank}};
constexpr Shape alltoallw{.moved = {0, 1, 3, per_rank_typed},
                          .in_place = {4, 5, 7, per_rank_typed}};
constexpr Shape put{.moved = {0, 1, 2}, .peer = 3};
constexpr Shape get_accumulate{.moved = {0, 1, 2}, .peer = 6};
constexpr Shape atomic{.peer = 4};

}  // namespace

constexpr Function kFunctions[] = {
#define PARIO_MPI(name, args, large, category, role, comm, shape) \
  {#name, args, #category, Role::role, comm, shape, Op::other, kPlain},
#define PARIO_MPI_FILE(name, args, large, op, how) \
  {#name, args, "mpiio", Role::file, 0, none, Op::op, how},
#define PARIO_MPI_QUIET(name, args, large) \
  {#name, args, "mpi", Role::quiet, -1, none, Op::other, kPlain},
#include "observe/pmpi/functions.def"
#undef PARIO_MPI
#undef PARIO_MPI_FILE
#undef PARIO_MPI_QUIET
};

static_assert(kFirstId + std::size(kFunctions) <= trace::kMaxFunctions);

void fill(std::span<trace::FunctionInfo, trace::kMaxFunctions> table) {
  static constexpr const char* names[] = {
#define PARIO_MPI(name, ...) "MPI_" #name,
#define PARIO_MPI_FILE(name, ...) "MPI_" #name,
#define PARIO_MPI_QUIET(name, ...) "MPI_" #name,
#include "observe/pmpi/functions.def"
#undef PARIO_MPI
#undef PARIO_MPI_FILE
#undef PARIO_MPI_QUIET
  };
  for (std::size_t i = 0; i < std::size(kFunctions); ++i)
    table[kFirstId + i] = {names[i], kFunctions[i].category, kFunctions[i].op};
}

}  // namespace pario::pmpi
