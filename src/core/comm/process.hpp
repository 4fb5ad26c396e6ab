// Processes of this machine, distinguished from later processes with a recycled PID.
#pragma once

#include <cstdint>

namespace pario::comm {

struct Process {
  std::uint64_t pid = 0;
  std::uint64_t start = 0;        ///< as in /proc; 0: unknown
  std::uint64_t numbered_by = 0;  ///< the namespace of its PID

  static Process self();
  /// True if `pid` is its PID in the name space of this process, too.
  bool is_numbered_here() const;
  /// False if it has ended, also as a zombie; true if unknown.
  bool alive() const;
};

}  // namespace pario::comm
