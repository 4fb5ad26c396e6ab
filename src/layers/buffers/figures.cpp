#include "layers/buffers/figures.hpp"

#include <cmath>

namespace pario::buffers {
namespace {

constexpr std::size_t kColumn = 14;

/// The clock's anchor at the opening of the first file.
const base::Anchor& first_anchor() {
  static const base::Anchor anchor = (base::choose_clock(), base::anchor());
  return anchor;
}

/// Writes the rows of the table of one file.
class FigureTable {
 public:
  FigureTable(base::TextBuffer& out, double tick_rate) : out_(out), tick_rate_(tick_rate) {}

  /// Calls and seconds, for opens and closes.
  void add_short_row(std::string_view name, const Statistics::Calls& calls) {
    begin_row(name, calls);
    out_.add('\n');
  }
  void add_row(std::string_view name, const Statistics::Calls& calls) {
    begin_row(name, calls);
    const double seconds = seconds_of(calls), megabytes = static_cast<double>(calls.bytes) / 1e6;
    add_number(megabytes, 6);
    add_number(seconds > 0 ? megabytes / seconds : 0, 3);
    const auto count = static_cast<double>(calls.calls);
    add_number(calls.calls != 0 ? static_cast<double>(calls.bytes) / count : 0, 0);
    out_.add('\n');
  }

 private:
  double seconds_of(const Statistics::Calls& calls) const {
    return static_cast<double>(calls.ticks) / tick_rate_;
  }
  void begin_row(std::string_view name, const Statistics::Calls& calls) {
    out_.add("  ").add(name);
    for (std::size_t i = name.size(); i < 10; ++i) out_.add(' ');
    add_number(static_cast<double>(calls.calls), 0);
    add_number(seconds_of(calls), 6);
  }
  /// Adds a number, right-aligned in its column.
  void add_number(double value, int decimals) {
    base::Text<64> digits;
    std::uint64_t scale = 1;
    for (int i = 0; i < decimals; ++i) scale *= 10;
    const auto scaled =
        static_cast<std::uint64_t>(std::llround(value * static_cast<double>(scale)));
    digits.add(scaled / scale);
    if (decimals != 0) {
      digits.add('.');
      for (std::uint64_t rest = scaled % scale, unit = scale / 10; unit != 0;
           rest %= unit, unit /= 10)
        digits.add(static_cast<char>('0' + rest / unit));
    }
    for (std::size_t i = digits.view().size(); i < kColumn; ++i) out_.add(' ');
    out_.add(digits.view());
  }

  base::TextBuffer& out_;
  double tick_rate_;
};

}  // namespace

void start_tick_measurement() { first_anchor(); }

void print_figures(std::string_view path, const hints::StreamHints& hints, const Statistics& seen) {
  base::Text<4096> out;
  FigureTable table(out, static_cast<double>(base::tick_rate(first_anchor())));
  out.add("pario: ").add(path).add(": ").add(hints.count).add(" buffers of ").add(hints.size);
  out.add(" bytes\n");
  out.add("                   Calls       Seconds     Megabytes          MB/s  Average size\n");
  Statistics::Calls total;
  for (const Statistics::Calls* calls : {&seen.open, &seen.read, &seen.write, &seen.close}) {
    total.calls += calls->calls;
    total.bytes += calls->bytes;
    total.ticks += calls->ticks;
  }
  table.add_short_row("Open", seen.open);
  table.add_row("Read", seen.read);
  table.add_row("Write", seen.write);
  table.add_short_row("Close", seen.close);
  table.add_row("Total", total);
  table.add_row("Sys Read", seen.system_read);
  table.add_row("Sys Write", seen.system_write);
  out.add("  ").add(seen.buffers).add(" buffers used, ").add(seen.prefetches).add(" prefetches (");
  out.add(seen.wasted).add(" bytes wasted), ").add(seen.preflushes).add(" preflushes\n");
  base::say(out.view());
}

}  // namespace pario::buffers
