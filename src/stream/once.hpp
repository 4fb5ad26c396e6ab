// Files that all processes of a node read: each piece is read by one of them, into memory that they share.
#pragma once

#include <sys/stat.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

namespace pario::stream {

class Once;

namespace once {

/// The copy of an open file, as it is now; null: there is no room for one. The process has it until it ends, or needs the room.
Once* attach(const struct stat& status);
void detach(Once& copy);
/// As preadv; kPass: the kernel knows better.
long read(Once& copy, int descriptor, std::span<const iovec> pieces, std::uint64_t offset);
/// At the end of the process.
void end();
/// In the child of a fork.
void forget();

}  // namespace once
}  // namespace pario::stream
