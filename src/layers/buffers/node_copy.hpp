// Copies of files shared by the processes of a node (hint `read_once`): one process reads each part
// of a file.
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
/// Closes all copies at the end of the process.
void close_all();
/// Resets the table in the child of a fork.
void reset_in_child();

}  // namespace node_copies
}  // namespace pario::buffers
