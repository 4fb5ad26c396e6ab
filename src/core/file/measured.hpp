// The stripes that `pario stripe sweep` found best, for the files that a program creates. No heap,
// raw system calls only.
#pragma once

#include <string_view>

#include "core/layout/layout.hpp"

namespace pario::file {

/// Chooses the stripes of a new file in `directory` (a descriptor): those of the most similar sweep
/// of its file system, otherwise those of the policy. `sweeps` is the value of PARIO_STRIPE_SWEEPS:
/// "bytes:processes:stripes:unit=mount point", separated by commas; malformed parts say nothing.
layout::Striping choose_striping(std::string_view sweeps, int directory,
                                 const layout::Expected& expected);

}  // namespace pario::file
