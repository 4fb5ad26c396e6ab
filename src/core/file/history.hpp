// The expected size of a new file, from earlier files. No heap, raw system calls.
#pragma once

#include <cstdint>
#include <string_view>

namespace pario::file {

/// Bytes of the largest file of a directory whose name differs from `name` only in its numbers
/// ("step_0007.h5", "step_12.h5"); 0 if there is none. Reads only the beginning of large
/// directories.
std::uint64_t largest_like(int directory, std::string_view name);

/// True if two names have a number and differ only in their numbers.
bool differ_in_numbers(std::string_view one, std::string_view other);

}  // namespace pario::file
