// The calls of ranks that others wait for, as text for users.
#pragma once

#include <cstdint>
#include <string>

namespace pario::engine {

/// Describes the call that a process of this host is in, as its tracer shows it: "inside MPI_Recv
/// for 61 s, waiting for a message from rank 0". Empty if the processes are not traced. See
/// trace::call_of_process().
std::string describe_current_call(std::uint64_t pid, int world_rank);

}  // namespace pario::engine
