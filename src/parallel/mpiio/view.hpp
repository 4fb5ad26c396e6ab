// File views and file pointers.
#pragma once

#include "parallel/mpiio/file.hpp"

namespace pario::mpiio {

/// Returns a view of bytes from the beginning of the file.
View default_view();
void release_types(View& view);

/// True if data byte `position` of a view lies in the largest file, whose offsets are signed.
bool can_reach(const pattern::FileView& view, std::uint64_t position);
/// Returns the end of the file in data bytes of the view, rounded up to whole etypes.
base::Result<std::uint64_t> end_of(OpenFile& file);

}  // namespace pario::mpiio
