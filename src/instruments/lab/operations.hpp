// The functions that libfuse calls. Internal to module lab.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse3/fuse.h>

namespace pario::lab {

/// The lab is the private data of the file system.
fuse_operations operations();
void add_data_operations(fuse_operations& all);
void add_attribute_operations(fuse_operations& all);

}  // namespace pario::lab
