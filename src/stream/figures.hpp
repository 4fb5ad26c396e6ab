// The figures of one file, as text.
#pragma once

#include "stream/stream.hpp"

namespace pario::stream {

/// To stderr, at once.
void say_figures(std::string_view path, const hints::StreamHints& hints, const Statistics& seen, double tick_rate);

}  // namespace pario::stream
