// Closing a shared file: the report, and the file after the last rank has closed it.
#pragma once

#include "parallel/engine/opened_file.hpp"

namespace pario::engine {

/// Collective. Finishes calls and kept writes, reports, closes, then deletes or joins the file as
/// requested. An error shared by all ranks takes precedence over an error of this rank.
base::Status close_file(OpenedFile& state);

}  // namespace pario::engine
