// Texts of the program that the kernel would check: reading them must not fault where the call
// would only fail with EFAULT.
#pragma once

#include <string_view>

namespace pario::preload {

/// Returns the text at `text` as far as it is readable, or its first bytes if it is long; empty for
/// null and invalid addresses. The thread remembers readable pages, so that this seldom takes a
/// system call.
std::string_view readable_text(const char* text);
/// The program unmaps memory: forgets the readable pages.
void forget_readable();

}  // namespace pario::preload
