// Processes of this machine, told apart also after their numbers were given to others.
#pragma once

#include <cstdint>

namespace pario::comm {

struct Process {
  std::uint64_t pid = 0;
  std::uint64_t start = 0;        ///< as /proc has it; 0: not known
  std::uint64_t numbered_by = 0;  ///< the namespace that its number belongs to

  static Process self();
  /// False when it has ended, also while nobody has asked for its status; true where that cannot be told.
  bool alive() const;
};

}  // namespace pario::comm
