// The hints of a file as text, in which rank 0 sends them to the other ranks.
#pragma once

#include <string>

#include "core/hints/hints.hpp"
#include "parallel/engine/context.hpp"

namespace pario::engine {

/// Formats one line "key=value" for each hint that has a text.
std::string format_hints(const hints::FileHints& hints);
/// Parses the output of format_hints(); hints without a line have their default.
hints::FileHints parse_hints(const std::string& text);
/// Collective: copies the hints of rank 0 to all ranks.
base::Status broadcast_hints(const FileContext& context, hints::FileHints& hints, const char* call);

}  // namespace pario::engine
