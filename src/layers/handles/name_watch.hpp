// Watches on the names of files, by inotify: a kept handle is valid while its name refers to its
// file, although other processes may rename, remove or replace the file at any moment.
//
// A change is visible to the first is_unchanged() after the call that made it has returned. Changes
// of the permissions of directories and of mounts are not noticed. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

namespace pario::handles::name_watch {

/// The state of all watched names; it changes when a name may refer to another file. 0: never.
using Epoch = std::uint32_t;

/// Watches the absolute name of a file on a local file system, and its directories. The caller
/// compares name and file afterwards. Returns the present epoch; 0: the name cannot be watched,
/// because the file system is not local, the name contains links, or the kernel's limits are
/// reached.
Epoch watch(int descriptor, std::string_view path);
/// True if no watched name has changed since `epoch`.
bool is_unchanged(Epoch epoch);

/// True for the descriptor of the watches, which the program does not know.
bool is_own(int descriptor);
/// Ends all watches, because the program closes descriptors that it does not know.
void stop();

}  // namespace pario::handles::name_watch
