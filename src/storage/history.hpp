// What earlier files tell of a new one. Inside room storage. No heap, raw system calls.
#pragma once

#include <cstdint>
#include <string_view>

namespace pario::storage {

/// Bytes of the largest file of a directory whose name differs from `name` only in its numbers ("step_0007.h5", "step_12.h5"); 0: there is
/// none. Of large directories only the beginning is looked at.
std::uint64_t largest_like(int directory, std::string_view name);

/// Whether two names are the same but for their numbers, of which they have one.
bool differ_in_numbers(std::string_view one, std::string_view other);

}  // namespace pario::storage
