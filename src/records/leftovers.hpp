// Files that have a name only while a run lasts. It holds a lock on them, by which a later one tells what a killed one has left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/base.hpp"
#include "records/disk.hpp"
#include "records/host.hpp"

namespace pario::records {

/// The name of an output until it is whole; `number`: own_number() of who makes it.
std::string aside_of(std::string_view output, std::uint64_t number);
/// The name of a rank's temporary file that all ranks see, for one output: only its next run takes it for a leftover. `number`: of the
/// first.
std::string shared_name(std::uint64_t number, std::uint64_t rank, std::string_view output);

/// The output that such a name is of; empty: it is none, or one of another host, which alone can tell whether somebody writes it still (not
/// all file systems tell one host the locks of another).
std::string_view output_of_aside(std::string_view name);
std::string_view output_of_shared(std::string_view name);

/// A new file, held.
base::Result<Disk> open_held(const std::string& path, Caching caching);
/// Nobody takes the file for a leftover as long as it is open here.
void hold(const Disk& file);
/// Removes the files of `directory` whose names `ours` knows and that nobody holds. What cannot be told to be one stays.
void remove_leftovers(const std::string& directory, const std::function<bool(std::string_view name)>& ours);

}  // namespace pario::records
