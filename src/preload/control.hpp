// What the commands of fcntl do.
#pragma once

#include <fcntl.h>

namespace pario::preload {

enum class FcntlKind { plain, copy, lock, flags };

inline FcntlKind kind_of(int command) {
  switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
      return FcntlKind::copy;
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
      return FcntlKind::lock;
    case F_SETFL:
      return FcntlKind::flags;
    default:
      return FcntlKind::plain;
  }
}

}  // namespace pario::preload
