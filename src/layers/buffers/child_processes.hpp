// Children with copies of this process's descriptors: detects whether one may still be alive.
//
// Before a fork a page of shared memory is mapped, which the child and its children inherit; this
// process unmaps it afterwards. Only fork, exec and the end of a process, of any kind (SIGKILL,
// direct system calls), change the processes that map it, and the kernel shows whether any process
// does. A child that hands descriptors on to a program it executes sets a flag in the page.
#pragma once

namespace pario::buffers::child_processes {

/// The holders of copies of descriptors.
enum class Holders {
  alive,   ///< or not known yet
  gone,    ///< no process has copies
  unknown  ///< programs have copies that cannot be followed
};
/// The state of the children of all forks so far; `alive` also during a fork. Thread-safe and
/// async-signal-safe.
Holders find_holders();

// Called around a fork, in this order.
/// Locks until the fork is over. Returns the state of the children of all earlier forks.
Holders before_fork();
/// Maps the page for the next child. False if the end of that child cannot be detected.
bool follow_next_child();
void after_fork_in_parent();
void after_fork_in_child();

/// True if this process has copies of its parent's descriptors.
bool has_inherited_descriptors();
/// Marks the copies as handed to another program, which cannot be followed.
void mark_handed_on();
/// True if a descriptor for which `is_copy` returns true stays open when this process executes
/// another program, or if that is unknown.
bool stays_open_on_exec(bool (*is_copy)(int descriptor));

}  // namespace pario::buffers::child_processes
