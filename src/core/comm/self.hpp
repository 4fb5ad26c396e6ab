// One rank that knows its number in MPI_COMM_WORLD.
#pragma once

#include "core/comm/comm.hpp"

namespace pario::comm {

std::shared_ptr<Comm> make_self(int world_rank);

}  // namespace pario::comm
