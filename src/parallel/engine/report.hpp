// The report of a file: outcome of the hints, statistics and timers, on stderr and in the log.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/engine/context.hpp"
#include "parallel/engine/engine.hpp"

namespace pario::engine {

/// Statistics of one rank; plain words, sent unchanged.
struct RankStatistics {
  Statistics statistics = {};
  std::uint64_t open_ns = 0;
};

/// The facts about a file that is being closed.
struct Closing {
  const std::string& path;
  const comm::Comm& comm;
  const hints::FileHints& hints;
  const layout::StripeLayout& layout;
  const std::vector<HintOutcome>& audit;
  std::span<const RankStatistics> ranks;
};

/// Writes the note `mpiio` to the log, and to stderr the parts that hint pario_report names.
void write_report(const Closing& closing);
/// Formats the parts that `parts` names, a value of pario_report.
std::string format_report(const Closing& closing, std::string_view parts);
std::string format_report_json(const Closing& closing);

/// Prints a line to stderr and to the log, also if tracing is off.
void say(const std::string& text);

/// Compares the requested, applied and effective value of every setting of `request`.
/// `striping_reason`: why the stripes of the file differ from the requested ones; `used`: the
/// windows of its collective calls.
std::vector<HintOutcome> make_audit(const OpenRequest& request, const hints::FileHints& effective,
                                    const std::string& striping_reason, const UsedWindows& used);

}  // namespace pario::engine
