// Files that ranks of a Comm write and read together.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "core/comm/comm.hpp"

namespace pario::bindings {

/// Opens a file as a SharedFile of Python. Collective over `comm`; `patience_s`: seconds that ranks
/// wait for each other in a call; `opened`: a descriptor of the file, of which this rank uses a
/// copy, or -1; `buffered`: reads go through windows that the ranks share, for runs of any length.
nanobind::object open_shared_file(std::shared_ptr<comm::Comm> comm, const std::string& path,
                                  bool writes, double patience_s, int opened = -1,
                                  bool buffered = false);

}  // namespace pario::bindings
