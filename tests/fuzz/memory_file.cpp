#include <sys/mman.h>
#include <unistd.h>

#include "targets.hpp"

namespace pario::fuzz {

MemoryFile::MemoryFile(Input content) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  const auto size = static_cast<ssize_t>(content.size());
  require(::write(descriptor_, content.data(), content.size()) == size,
          "a file in memory takes its bytes");
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

}  // namespace pario::fuzz
