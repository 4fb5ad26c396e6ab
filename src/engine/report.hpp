// What a file's hints came to and where its time went: for people on stderr, for the log as a note.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.hpp"

namespace pario::engine {

/// Of one rank; plain words, sent as they are.
struct RankFigures {
  Statistics statistics = {};
  std::uint64_t open_ns = 0;
};

/// What is reported of a file when it is closed.
struct Closing {
  const std::string& path;
  const comm::Comm& comm;
  const hints::FileHints& hints;
  const layout::StripeLayout& layout;
  const std::vector<HintOutcome>& audit;
  std::span<const RankFigures> ranks;
};

/// Writes the note `mpiio`, and on stderr what hint pario_report asks for.
void report(const Closing& closing);
/// The parts, for tests. `what`: the value of pario_report.
std::string report_text(const Closing& closing, std::string_view what);
std::string report_json(const Closing& closing);

/// Prints a line for people, on standard error and in the log; also where nothing is traced.
void say(const std::string& text);

/// Requested, applied and effective of every hint that was asked for.
std::vector<HintOutcome> audit_of(const OpenRequest& request, const hints::FileHints& effective, const std::string& striping_reason);

void add(exchange::Tally& to, const exchange::Tally& more);
void add(Statistics& to, const Statistics& more);

}  // namespace pario::engine
