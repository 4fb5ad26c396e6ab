// Opening of local files, with the requested stripes if that creates them.
#pragma once

#include <string>

#include "core/file/file.hpp"

namespace pario::file {

struct Opened {
  int descriptor = -1;
  bool created = false;
  std::string trouble = {};  ///< the reason why the requested stripes were not set
};
/// Opens the file; a new one gets the stripes of the request if its file system has any.
base::Result<Opened> open_striped(const OpenRequest& request);

}  // namespace pario::file
