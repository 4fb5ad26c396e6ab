// Children that have copies of this process's descriptors: whether one may still be alive.
//
// Before a fork a page of shared memory is mapped, which the child inherits, and its children do; this process lets go of it afterwards.
// Only fork, exec and the end of a process change who has it, however they come about (SIGKILL, system calls that nobody here sees), and
// the kernel tells whether anybody does. A child that hands descriptors on to a program that it executes says so in the page.
#pragma once

namespace pario::stream::children {

enum class Fate {
  alive,   ///< or not known yet
  gone,    ///< whoever had copies has none any more
  unknown  ///< copies are with programs that cannot be followed
};
/// Of the children of all forks so far; alive, too, while there is a fork. Thread-safe, and for signal handlers.
Fate fate();

// Around a fork, in this order.
/// Until the fork is over nobody else has one. The fate of all children before.
Fate before_fork();
/// False: it will never be known what becomes of the next child.
bool follow_next();
void after_fork_in_parent();
void after_fork_in_child();

/// Whether this process has copies of descriptors of the process that it was forked from.
bool has_copies();
/// They may go to another program, which nobody can follow.
void hand_on();
/// Whether a descriptor for which `is_meant` stays open when this process executes another program; true, too, when that is not known.
bool any_stays_open(bool (*is_meant)(int descriptor));

}  // namespace pario::stream::children
