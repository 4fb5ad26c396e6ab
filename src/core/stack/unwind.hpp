// The rules of .eh_frame for one address: places of the caller's registers (x86-64).
#pragma once

#include <cstdint>

#include "core/stack/stack.hpp"

namespace pario::stack {

/// The registers that rules are based on, by their numbers in DWARF.
inline constexpr std::uint64_t kFrameRegister = 6, kStackRegister = 7, kReturnRegister = 16;

/// The place of a caller's register.
struct Rule {
  enum class Kind : std::uint8_t {
    unchanged,
    at_cfa,    ///< in memory, `offset` bytes from the canonical frame address
    at_frame,  ///< in memory, `offset` bytes from the frame register
    unknown
  };
  Kind kind = Kind::unchanged;
  std::int64_t offset = 0;
};

/// The rules at one address. The canonical frame address is the stack pointer of the caller after
/// the return.
struct Rules {
  std::uint64_t base = kStackRegister;  ///< register of the canonical frame address
  std::int64_t offset = 0;
  bool indirect = false;  ///< it is the word at `base` + `offset`
  bool known = true;      ///< false: it cannot be computed
  Rule frame, address{Rule::Kind::unknown};
};

/// Finds the rules for an address in the table of its object; false if there are none.
/// `function`: the beginning of the function.
bool find_rules(const Object& object, std::uint64_t address, Rules& rules, std::uint64_t& function);

}  // namespace pario::stack
