// File views and file pointers.
#pragma once

#include "parallel/mpiio/file.hpp"

namespace pario::mpiio {

/// Returns a view of bytes from the beginning of the file.
View default_view();
void release_types(View& view);

/// Returns the end of the file in data bytes of the view, rounded up to whole etypes.
base::Result<std::uint64_t> end_of(OpenFile& file);

}  // namespace pario::mpiio
