// References of a loaded object to functions of other objects.
#pragma once

#include <link.h>

#include <string_view>

namespace pario::symbols {

/// A reference to a symbol: its name, and the version that the object was linked with (empty:
/// none).
struct Reference {
  const char* name = nullptr;  ///< null: there is no such reference
  const char* version = "";
};

/// Finds a reference of a loaded object to a function of this name, or of a name that `accepts`.
Reference find_reference(const link_map& object, std::string_view name);
Reference find_reference(const link_map& object, bool (*accepts)(std::string_view name));

}  // namespace pario::symbols
