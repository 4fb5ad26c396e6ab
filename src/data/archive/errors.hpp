// Names of members in errors of module archive.
#pragma once

#include <string>
#include <string_view>

namespace pario::archive {

/// Quotes a name for an error; escapes its control characters.
std::string quote(std::string_view name);

}  // namespace pario::archive
