// Texts of the program that the kernel would check: reading them must not fault where the call
// would only fail with EFAULT.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/trace/trace.hpp"

namespace pario::preload {

/// Characters of the texts that readable_text() returns at most.
inline constexpr std::size_t kLongestText = sizeof(trace::CallRow::path);
/// Returns the text at `text` as far as it is readable, or its first bytes if it is long; empty for
/// null and invalid addresses. The thread remembers readable pages, so that this seldom takes a
/// system call.
std::string_view readable_text(const char* text);
/// Returns all of a text that is readable. `start`: its result of readable_text().
inline std::string_view complete_text(std::string_view start) {
  const char* const text = start.data();  // a part of the program's text, which ends with zero
  return start.size() < kLongestText ? start : std::string_view(text);
}
/// The program unmaps memory: forgets the readable pages.
void forget_readable();

}  // namespace pario::preload
