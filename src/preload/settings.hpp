// What the user has set, and what is not traced.
#pragma once

#include <string_view>

#include "trace/trace.hpp"

namespace pario::preload::settings {

/// Reads them from the environment. False: no log is wanted.
bool read(trace::Config& config);

/// What was wrong with them; empty: nothing. To be said when the log is open.
std::string_view complaints();

/// Files that are no storage (/proc, /sys, /dev except /dev/shm), our own logs, and what the user excludes.
bool excluded(std::string_view path);

}  // namespace pario::preload::settings
