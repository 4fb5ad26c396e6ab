#include "parallel/engine/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "core/trace/trace.hpp"

namespace pario::engine {
namespace {

constexpr std::size_t kNoteSize = 200'000;

/// One phase of the calls, summed over the ranks; nanoseconds.
struct Phase {
  const char* name;
  std::uint64_t least = 0, most = 0, sum = 0;
};

template <class Value>
Phase make_phase(const char* name, std::span<const RankStatistics> ranks, Value value) {
  Phase phase{.name = name, .least = ~std::uint64_t{0}};
  for (const RankStatistics& rank : ranks) {
    const std::uint64_t ns = value(rank);
    phase.least = std::min(phase.least, ns);
    phase.most = std::max(phase.most, ns);
    phase.sum += ns;
  }
  return phase;
}

/// Makes phases of the rows PARIO_TIMER of both tables, after the time of opening.
std::vector<Phase> make_phases(std::span<const RankStatistics> ranks) {
  using Rank = RankStatistics;
  return {
      make_phase("open", ranks, [](const Rank& rank) { return rank.open_ns; }),
#define PARIO_COUNTER(name)
#define PARIO_DERIVED(name, value)
#define PARIO_AVERAGE(name, sum, count)
#define PARIO_TIMER(member, name) \
  make_phase(name, ranks, [](const Rank& rank) { return rank.statistics.member; }),
#include "parallel/engine/statistics.def"
#undef PARIO_TIMER
#define PARIO_TIMER(member, name) \
  make_phase(name, ranks, [](const Rank& rank) { return rank.statistics.transfer.member; }),
#include "parallel/exchange/counters.def"
#undef PARIO_TIMER
#undef PARIO_COUNTER
#undef PARIO_DERIVED
#undef PARIO_AVERAGE
  };
}

Statistics add_up(std::span<const RankStatistics> ranks) {
  Statistics sum;
  for (const RankStatistics& rank : ranks) sum += rank.statistics;
  return sum;
}

bool has_written(const RankStatistics& rank) { return rank.statistics.transfer.system_writes > 0; }

std::uint64_t count_writers(const Closing& closing) {
  return static_cast<std::uint64_t>(std::ranges::count_if(closing.ranks, has_written));
}

std::uint64_t count_writing_nodes(const Closing& closing) {
  std::set<int> nodes;
  for (std::size_t rank = 0; rank < closing.ranks.size(); ++rank)
    if (has_written(closing.ranks[rank])) nodes.insert(closing.comm.topology().node_of[rank]);
  return nodes.size();
}

struct Line {
  const char* name;
  std::uint64_t value;
};

/// Makes lines of the other rows of both tables, in their order.
std::vector<Line> make_lines(const Closing& closing) {
  const Statistics sum = add_up(closing.ranks);
  return {
#define PARIO_TIMER(member, name)
#define PARIO_COUNTER(name) {#name, sum.name},
#define PARIO_DERIVED(name, value) {#name, value},
#include "parallel/engine/statistics.def"
#undef PARIO_COUNTER
#define PARIO_COUNTER(name) {#name, sum.transfer.name},
#define PARIO_AVERAGE(name, total, count) \
  {#name, sum.transfer.count == 0 ? 0 : sum.transfer.total / sum.transfer.count},
#include "parallel/exchange/counters.def"
#undef PARIO_TIMER
#undef PARIO_COUNTER
#undef PARIO_DERIVED
#undef PARIO_AVERAGE
  };
}

/// Bytes per second over the time of the slowest rank: `net` in its calls, `raw` in the file.
struct Bandwidth {
  double net = 0, raw = 0;
};

Bandwidth make_bandwidth(const Closing& closing) {
  const Statistics sum = add_up(closing.ranks);
  std::uint64_t calls = 0, file = 0;
  for (const RankStatistics& rank : closing.ranks) {
    calls = std::max(calls, rank.statistics.total_ns);
    file = std::max(file, rank.statistics.transfer.file_ns);
  }
  const auto over = [](std::uint64_t bytes, std::uint64_t ns) {
    return ns == 0 ? 0 : static_cast<double>(bytes) * 1e9 / static_cast<double>(ns);
  };
  return {over(sum.bytes_written + sum.bytes_read, calls),
          over(sum.transfer.system_write_bytes + sum.transfer.system_read_bytes, file)};
}

std::string pad(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string format_seconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%12.6f", ns * 1e-9);
  return text;
}

std::string format_hint_audit(const Closing& closing) {
  std::string out = "  hints                    requested        applied          effective\n";
  for (const HintOutcome& line : closing.audit) {
    out += "    " + pad(line.key, 20) + " " + pad(line.requested, 16) + " " +
           pad(line.applied.empty() ? "-" : line.applied, 16) + " " +
           (line.effective.empty() ? "-" : line.effective);
    if (!line.reason.empty()) out += "  (" + line.reason + ")";
    out += '\n';
  }
  return out;
}

std::string format_statistics(const Closing& closing) {
  std::string out = "  statistics\n";
  for (const Line& line : make_lines(closing))
    out += "    " + pad(line.name, 24) + std::to_string(line.value) + "\n";
  return out;
}

std::string format_timers(const Closing& closing) {
  std::string out = "  timers, seconds             min         max     average\n";
  for (const Phase& phase : make_phases(closing.ranks))
    out +=
        "    " + pad(phase.name, 16) + format_seconds(static_cast<double>(phase.least)) +
        format_seconds(static_cast<double>(phase.most)) +
        format_seconds(static_cast<double>(phase.sum) / static_cast<double>(closing.ranks.size())) +
        "\n";
  const Bandwidth bandwidth = make_bandwidth(closing);
  char text[128];
  std::snprintf(text, sizeof text,
                "    net %.1f MB/s (bytes of the program over the time in calls), raw %.1f MB/s "
                "(of the file)\n",
                bandwidth.net / 1e6, bandwidth.raw / 1e6);
  return out + text;
}

bool names_part(std::string_view parts, std::string_view part) {
  return parts.find(part) != parts.npos || parts.find("all") != parts.npos;
}

void add_phases(base::Json& json, const Closing& closing) {
  json.key("timers_ns").begin_object();
  for (const Phase& phase : make_phases(closing.ranks)) {
    json.key(phase.name).begin_object().member("min", phase.least).member("max", phase.most);
    json.member("avg", phase.sum / closing.ranks.size()).end_object();
  }
  json.end_object();
}

void add_hints(base::Json& json, const Closing& closing) {
  json.key("hints").begin_array();
  for (const HintOutcome& line : closing.audit) {
    json.begin_object()
        .member("key", std::string_view(line.key))
        .member("requested", std::string_view(line.requested));
    json.member("applied", std::string_view(line.applied))
        .member("effective", std::string_view(line.effective));
    json.member("reason", std::string_view(line.reason)).end_object();
  }
  json.end_array();
}

}  // namespace

std::string format_report(const Closing& closing, std::string_view parts) {
  const int nodes = closing.comm.topology().nodes();
  std::string out = "pario: " + closing.path + ", " + std::to_string(closing.ranks.size()) +
                    " ranks on " + std::to_string(nodes) + (nodes == 1 ? " node\n" : " nodes\n");
  if (names_part(parts, "hints")) out += format_hint_audit(closing);
  if (names_part(parts, "statistics")) out += format_statistics(closing);
  if (names_part(parts, "timers")) out += format_timers(closing);
  return out;
}

std::string format_report_json(const Closing& closing) {
  const auto room = std::make_unique_for_overwrite<char[]>(kNoteSize);
  base::TextBuffer text(room.get(), kNoteSize);
  base::Json json(text);
  json.begin_object().member("note", "mpiio").member("path", std::string_view(closing.path));
  if (const trace::Record* record = trace::known_record(trace::Layer::mpiio, closing.path))
    json.member("record", trace::index_of(record));
  json.member("ranks", closing.ranks.size()).member("nodes", closing.comm.topology().nodes());
  json.key("statistics").begin_object();
  for (const Line& line : make_lines(closing)) json.member(line.name, line.value);
  json.end_object();
  add_phases(json, closing);
  const Bandwidth bandwidth = make_bandwidth(closing);
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

void write_report(const Closing& closing) {
  const std::string& parts = closing.hints.pario_report;
  const bool prints_json = parts == "json";
  const std::string json = prints_json || trace::on() ? format_report_json(closing) : std::string();
  if (!json.empty()) trace::note(json);
  if (parts.empty()) return;
  const std::string text = prints_json ? json + "\n" : format_report(closing, parts);
  static_cast<void>(base::system_call(SYS_write, STDERR_FILENO, text.data(), text.size()));
}

}  // namespace pario::engine
