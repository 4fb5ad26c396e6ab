// Module staging: the lowest layer. Where files are staged to this node (PARIO_STAGE, `pario run
// --stage DIR=LOCAL`), names in DIR are replaced by names in the local directory LOCAL:
//
// - A new file is created in LOCAL, and a file that is replaced as a whole is written there.
// - A file that exists in LOCAL hides the file of the same name in DIR.
// - Other existing files are read and changed in place.
//
// DIR itself does not change until `pario run` copies the files back.
#pragma once

#include "layers/chain/chain.hpp"

namespace pario::staging {

/// True if at least one directory is staged. Reads the settings at the first call.
bool is_active();
/// The treatment of a function in column `staging` of treatments.def; null: none.
void* treatment_of(symbols::Symbol symbol);

}  // namespace pario::staging
