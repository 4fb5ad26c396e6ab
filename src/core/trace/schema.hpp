// The schema block: the log describes its own rows.
#pragma once

#include <span>

#include "core/base/base.hpp"
#include "core/trace/trace.hpp"

namespace pario::trace {

/// Writes the schema as JSON (docs/log-format.md, Schema).
void write_schema(base::TextBuffer& out, std::span<const FunctionInfo> functions);

}  // namespace pario::trace
