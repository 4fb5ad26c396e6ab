// Errors of system calls in module archive.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/base.hpp"

namespace pario::archive {

/// The error of a system call on a path; `number` is its errno.
inline base::Error make_error(const char* operation, std::string path, int number = errno) {
  return {.number = number, .operation = operation, .path = std::move(path)};
}

/// Quotes a name for an error; escapes its control characters.
std::string quote(std::string_view name);

}  // namespace pario::archive
