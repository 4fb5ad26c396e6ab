// Module striping: the layer that creates new files with the stripes of the settings (PARIO_HINTS).
// It has treatments for the calls that create files and directories; module file creates the files
// (new_file.hpp).
#pragma once

#include "layers/chain/chain.hpp"

namespace pario::striping {

/// True if a setting concerns stripes. Reads the settings at the first call.
bool is_active();
/// The treatment of a function in column `striping` of treatments.def; null: none.
void* treatment_of(symbols::Symbol symbol);

}  // namespace pario::striping
