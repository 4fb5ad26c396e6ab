#include "engine/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "trace/trace.hpp"

namespace pario::engine {
namespace {

constexpr std::size_t kNoteRoom = 200'000;

/// One phase of the calls, over the ranks.
struct Phase {
  const char* name;
  std::uint64_t least = 0, most = 0, sum = 0;
};

template <class Figure>
Phase phase_of(const char* name, std::span<const RankFigures> ranks, Figure figure) {
  Phase phase{.name = name, .least = ~std::uint64_t{0}};
  for (const RankFigures& rank : ranks) {
    const std::uint64_t ns = figure(rank);
    phase.least = std::min(phase.least, ns);
    phase.most = std::max(phase.most, ns);
    phase.sum += ns;
  }
  return phase;
}

std::vector<Phase> phases_of(std::span<const RankFigures> ranks) {
  return {
      phase_of("open", ranks, [](const RankFigures& rank) { return rank.open_ns; }),
      phase_of("calls", ranks, [](const RankFigures& rank) { return rank.statistics.total_ns; }),
      phase_of("wait", ranks, [](const RankFigures& rank) { return rank.statistics.tally.wait_ns; }),
      phase_of("copy", ranks, [](const RankFigures& rank) { return rank.statistics.tally.copy_ns; }),
      phase_of("messages", ranks, [](const RankFigures& rank) { return rank.statistics.tally.message_ns; }),
      phase_of("file", ranks, [](const RankFigures& rank) { return rank.statistics.tally.file_ns; }),
  };
}

Statistics sum_of(std::span<const RankFigures> ranks) {
  Statistics sum;
  for (const RankFigures& rank : ranks) add(sum, rank.statistics);
  return sum;
}

std::uint64_t writers(std::span<const RankFigures> ranks) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(ranks, [](const RankFigures& rank) { return rank.statistics.tally.file_writes > 0; }));
}

std::uint64_t writing_nodes(const Closing& closing) {
  std::set<int> nodes;
  for (std::size_t rank = 0; rank < closing.ranks.size(); ++rank)
    if (closing.ranks[rank].statistics.tally.file_writes > 0) nodes.insert(closing.comm.topology().node_of[rank]);
  return nodes.size();
}

struct Line {
  const char* name;
  std::uint64_t value;
};

std::vector<Line> lines_of(const Closing& closing) {
  const Statistics sum = sum_of(closing.ranks);
  const exchange::Tally& tally = sum.tally;
  return {
      {"collective_writes", sum.collective_writes},
      {"collective_reads", sum.collective_reads},
      {"independent_writes", sum.independent_writes},
      {"independent_reads", sum.independent_reads},
      {"through_windows", sum.window_calls},
      {"direct", sum.direct_calls},
      {"sieved", sum.sieved_calls},
      {"written_behind", sum.behind_calls},
      {"writes_behind", sum.behind_writes},
      {"merged_calls", sum.merged_calls},
      {"merged_exchanges", sum.merged_exchanges},
      {"writers", writers(closing.ranks)},
      {"aggregators", writing_nodes(closing)},
      {"stripe_count", closing.layout.targets},
      {"stripe_size", closing.layout.unit},
      {"bytes_written", sum.bytes_written},
      {"bytes_read", sum.bytes_read},
      {"system_writes", tally.file_writes},
      {"system_write_bytes", tally.file_write_bytes},
      {"average_system_write", tally.file_writes == 0 ? 0 : tally.file_write_bytes / tally.file_writes},
      {"stripe_sized_writes", tally.whole_units},
      {"system_reads", tally.file_reads},
      {"system_read_bytes", tally.file_read_bytes},
      {"read_modify_writes", tally.modified},
      {"gap_bytes", tally.hole_bytes},
      {"messages", tally.messages},
      {"message_bytes", tally.message_bytes},
  };
}

/// Bytes per second: over the time in calls of the slowest rank, and over its time in the file.
struct Bandwidth {
  double net = 0, raw = 0;
};

Bandwidth bandwidth_of(const Closing& closing) {
  const Statistics sum = sum_of(closing.ranks);
  std::uint64_t calls = 0, file = 0;
  for (const RankFigures& rank : closing.ranks) {
    calls = std::max(calls, rank.statistics.total_ns);
    file = std::max(file, rank.statistics.tally.file_ns);
  }
  const auto over = [](std::uint64_t bytes, std::uint64_t ns) {
    return ns == 0 ? 0 : static_cast<double>(bytes) * 1e9 / static_cast<double>(ns);
  };
  return {over(sum.bytes_written + sum.bytes_read, calls), over(sum.tally.file_write_bytes + sum.tally.file_read_bytes, file)};
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string seconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%12.6f", ns * 1e-9);
  return text;
}

std::string hints_text(const Closing& closing) {
  std::string out = "  hints                    requested        applied          effective\n";
  for (const HintOutcome& line : closing.audit) {
    out += "    " + padded(line.key, 20) + " " + padded(line.requested, 16) + " " + padded(line.applied.empty() ? "-" : line.applied, 16) +
           " " + (line.effective.empty() ? "-" : line.effective);
    if (!line.reason.empty()) out += "  (" + line.reason + ")";
    out += '\n';
  }
  return out;
}

std::string statistics_text(const Closing& closing) {
  std::string out = "  statistics\n";
  for (const Line& line : lines_of(closing)) out += "    " + padded(line.name, 24) + std::to_string(line.value) + "\n";
  return out;
}

std::string timers_text(const Closing& closing) {
  std::string out = "  timers, seconds             min         max     average\n";
  for (const Phase& phase : phases_of(closing.ranks))
    out += "    " + padded(phase.name, 16) + seconds(static_cast<double>(phase.least)) + seconds(static_cast<double>(phase.most)) +
           seconds(static_cast<double>(phase.sum) / static_cast<double>(closing.ranks.size())) + "\n";
  const Bandwidth bandwidth = bandwidth_of(closing);
  char text[128];
  std::snprintf(text, sizeof text, "    net %.1f MB/s (bytes of the program over the time in calls), raw %.1f MB/s (of the file)\n",
                bandwidth.net / 1e6, bandwidth.raw / 1e6);
  return out + text;
}

bool wants(std::string_view what, std::string_view part) { return what.find(part) != what.npos || what.find("all") != what.npos; }

void add_phases(base::Json& json, const Closing& closing) {
  json.key("timers_ns").begin_object();
  for (const Phase& phase : phases_of(closing.ranks)) {
    json.key(phase.name).begin_object().member("min", phase.least).member("max", phase.most);
    json.member("avg", phase.sum / closing.ranks.size()).end_object();
  }
  json.end_object();
}

void add_hints(base::Json& json, const Closing& closing) {
  json.key("hints").begin_array();
  for (const HintOutcome& line : closing.audit) {
    json.begin_object().member("key", std::string_view(line.key)).member("requested", std::string_view(line.requested));
    json.member("applied", std::string_view(line.applied)).member("effective", std::string_view(line.effective));
    json.member("reason", std::string_view(line.reason)).end_object();
  }
  json.end_array();
}

}  // namespace

std::string report_text(const Closing& closing, std::string_view what) {
  const int nodes = closing.comm.topology().nodes();
  std::string out = "pario: " + closing.path + ", " + std::to_string(closing.ranks.size()) + " ranks on " + std::to_string(nodes) +
                    (nodes == 1 ? " node\n" : " nodes\n");
  if (wants(what, "hints")) out += hints_text(closing);
  if (wants(what, "statistics")) out += statistics_text(closing);
  if (wants(what, "timers")) out += timers_text(closing);
  return out;
}

std::string report_json(const Closing& closing) {
  const auto room = std::make_unique<char[]>(kNoteRoom);
  base::TextBuffer text(room.get(), kNoteRoom);
  base::Json json(text);
  json.begin_object().member("note", "mpiio").member("path", std::string_view(closing.path));
  if (const trace::Record* record = trace::known_record(trace::Layer::mpiio, closing.path)) json.member("record", trace::index_of(record));
  json.member("ranks", closing.ranks.size()).member("nodes", closing.comm.topology().nodes());
  json.key("statistics").begin_object();
  for (const Line& line : lines_of(closing)) json.member(line.name, line.value);
  json.end_object();
  add_phases(json, closing);
  const Bandwidth bandwidth = bandwidth_of(closing);
  json.key("bandwidth").begin_object().member("net", static_cast<std::uint64_t>(bandwidth.net));
  json.member("raw", static_cast<std::uint64_t>(bandwidth.raw)).end_object();
  add_hints(json, closing);
  json.end_object();
  return text.complete() ? std::string(json.view()) : std::string();
}

void say(const std::string& text) {
  if (trace::on())
    trace::message(text);
  else
    base::say("pario: " + text + "\n");
}

void report(const Closing& closing) {
  const std::string json = report_json(closing);
  if (!json.empty()) trace::note(json);
  const std::string& what = closing.hints.pario_report;
  if (what.empty()) return;
  const std::string text = what == "json" ? json + "\n" : report_text(closing, what);
  static_cast<void>(base::system_call(SYS_write, STDERR_FILENO, text.data(), text.size()));
}

}  // namespace pario::engine
