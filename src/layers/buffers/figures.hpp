// The figures of one file as text (hint `verbose`), in the form of Cray's IOBUF.
#pragma once

#include "layers/buffers/buffers.hpp"

namespace pario::buffers {

/// Starts to measure the rate of ticks, before the first call is timed.
void start_tick_measurement();
/// Prints the figures on stderr.
void print_figures(std::string_view path, const hints::StreamHints& hints, const Statistics& seen);

}  // namespace pario::buffers
