// Closing a shared file: the report, and the file after the last rank has closed it.
#pragma once

#include "parallel/engine/opened_file.hpp"

namespace pario::engine {

/// Collective. Finishes calls and kept writes, reports, closes, then deletes or joins the file as
/// requested. An error that all ranks share wins over one of this rank.
base::Status close_file(OpenedFile& state);

}  // namespace pario::engine
