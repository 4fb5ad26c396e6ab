// Files that have a name only while a run lasts. It holds a lock on them, by which a later one tells what a killed one has left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/base.hpp"
#include "records/disk.hpp"

namespace pario::records {

/// What stands behind the name of an output that is not whole yet; a number follows.
inline constexpr std::string_view kPart = ".pario-part.";
/// The name of a rank's temporary file that all ranks see, for one output: only its next run takes it for a leftover.
std::string shared_name(std::uint64_t number, std::uint64_t rank, std::string_view output);
bool is_shared_of(std::string_view name, std::string_view output);

/// A new file, held.
base::Result<Disk> open_held(const std::string& path, Caching caching);
/// Nobody takes the file for a leftover as long as it is open here.
void hold(const Disk& file);
/// Removes the files of `directory` whose names `ours` knows and that nobody holds. What cannot be told to be one stays.
void remove_leftovers(const std::string& directory, const std::function<bool(std::string_view name)>& ours);

}  // namespace pario::records
