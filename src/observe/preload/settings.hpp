// The settings of the tracer, and the files that are not traced.
#pragma once

#include <string_view>

#include "core/trace/trace.hpp"

namespace pario::preload::settings {

/// Reads the settings from the environment. False: there is no log directory.
bool read(trace::Config& config);

/// The first error in the settings; empty: none. For a message when the log is open.
std::string_view errors();

/// True for files that are no storage (/proc, /sys, /dev except /dev/shm), for pario's logs, and
/// for files that the user excludes.
bool is_excluded(std::string_view path);

}  // namespace pario::preload::settings
