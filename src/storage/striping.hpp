// New files with the stripes that were asked for.
#pragma once

#include <string>

#include "storage/storage.hpp"

namespace pario::storage {

struct Opened {
  int descriptor = -1;
  bool created = false;
  std::string trouble = {};  ///< why a new file has not got the stripes that were asked for
};
/// Opens the file; when that creates it, with the stripes of the request where the file system has any.
base::Result<Opened> open_striped(const OpenRequest& request);

}  // namespace pario::storage
