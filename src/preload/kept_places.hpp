// The table of handles that rest, and of those that may.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <cstdio>

namespace pario::preload::kept {

/// Whether settings say so of any file.
bool wanted();

/// A descriptor that rests is, for the program, none: what to call the kernel with.
bool rests(int descriptor);
inline int told(int descriptor) { return rests(descriptor) ? -1 : descriptor; }

/// A handle of that name and those flags, which the program has from now on; negative or null: none rests.
int reopen(int directory, const char* path, int flags);
std::FILE* reopen(const char* path, const char* mode);

/// The program has opened it: at close it may be kept.
void note_open(int directory, const char* path, int flags, int descriptor);
void note_open(const char* path, const char* mode, std::FILE* stream);

/// What the program closes rests from now on, or has to be closed. `lost`: errno of what it had closed before, which closing it tells of.
struct Kept {
  bool rests = false;
  int lost = 0;
};
Kept keep(int descriptor);
Kept keep(std::FILE* stream);

/// What the program has is not to be kept at close.
void forget(int descriptor);
void forget(unsigned first, unsigned last);
/// Standard input, output and error: a program that closes one of them opens a file to get its number.
void note_number(int descriptor, bool open);
/// In the child of a fork.
void forget_all();

/// Closes what rests under a number.
void give_up(int descriptor);
/// Before a name is no longer that of its file (all, where it is not that of a file): what has it is closed, at the latest by the program.
void give_up(int directory, const char* path);
void give_up_names();
/// The same of all names of an open file.
void give_up_file(int descriptor);

}  // namespace pario::preload::kept
