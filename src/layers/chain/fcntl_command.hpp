// The effect of a command of fcntl.
#pragma once

#include <fcntl.h>

namespace pario::chain {

enum class FcntlKind { plain, duplicate, lock, set_flags };

inline FcntlKind kind_of(int command) {
  switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
      return FcntlKind::duplicate;
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
      return FcntlKind::lock;
    case F_SETFL:
      return FcntlKind::set_flags;
    default:
      return FcntlKind::plain;
  }
}

}  // namespace pario::chain
