// This host among those that share a file system, and numbers that no two of them choose.
#pragma once

#include <cstdint>

namespace pario::records {

/// 32 bits of a hash of its name.
std::uint64_t host_mark();

/// A number that another process does not choose: the host's mark is its upper half, the rest is random.
std::uint64_t own_number();
inline bool is_of_this_host(std::uint64_t number) { return number >> 32 == host_mark(); }

}  // namespace pario::records
