// File views and file pointers.
#pragma once

#include "mpiio/file.hpp"

namespace pario::mpiio {

/// Bytes from the beginning of the file.
View default_view();
void drop(View& view);

/// The file as it would look through the view at the end of the file: its data bytes, rounded up to whole etypes.
base::Result<std::uint64_t> end_of(File& file);

}  // namespace pario::mpiio
