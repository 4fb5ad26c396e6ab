// Copies of files that the processes of a node share (hint `read_once`): each part of a file is
// read by one of them.
#pragma once

#include <sys/stat.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

namespace pario::buffers {

class NodeCopy;

namespace node_copies {

/// Returns the copy of an open file in its present state; null if there is no space. The process
/// keeps it until it ends or needs the space.
NodeCopy* attach(const struct stat& status);
void detach(NodeCopy& copy);
/// As preadv(2); kPass if a part could not be read, or another process takes too long to read it.
long read(NodeCopy& copy, int descriptor, std::span<const iovec> pieces, std::uint64_t offset);
/// At the end of the process.
void close_all();
/// In the child of a fork.
void reset_in_child();

}  // namespace node_copies
}  // namespace pario::buffers
