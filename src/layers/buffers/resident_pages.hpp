// The pages of files that this process has touched, as the kernel counts them. All functions are
// thread-safe and may be called in signal handlers.
#pragma once

#include <cstdint>

namespace pario::buffers::resident_pages {

/// The progress of the program in its mapped files, of all mappings together.
struct Progress {
  std::uint64_t resident = 0;      ///< bytes of files in the page tables of this process
  std::uint64_t major_faults = 0;  ///< page faults that waited for I/O, since the process began
};
Progress find_progress();

/// Returns the first touched page of [begin, end); null if there is none, or if the kernel cannot
/// tell (before Linux 6.7).
const char* find_first(const char* begin, const char* end);

}  // namespace pario::buffers::resident_pages
