// The figures of one file when it is closed, as users of IOBUF know them.
#include "stream/figures.hpp"

#include <algorithm>
#include <cmath>

namespace pario::stream {
namespace {

constexpr std::size_t kColumn = 14;

/// A number with so many decimals, at the right of a column.
void add_number(base::TextBuffer& out, double value, int decimals) {
  base::Text<64> digits;
  std::uint64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  const auto scaled = static_cast<std::uint64_t>(std::llround(value * static_cast<double>(scale)));
  digits.add(scaled / scale);
  if (decimals != 0) {
    digits.add('.');
    for (std::uint64_t rest = scaled % scale, unit = scale / 10; unit != 0; rest %= unit, unit /= 10)
      digits.add(static_cast<char>('0' + rest / unit));
  }
  for (std::size_t i = digits.view().size(); i < kColumn; ++i) out.add(' ');
  out.add(digits.view());
}

double seconds_of(const Statistics::Calls& calls, double tick_rate) { return static_cast<double>(calls.ticks) / tick_rate; }

/// Calls and seconds: all there is to say of opens and closes.
void begin_row(base::TextBuffer& out, std::string_view name, const Statistics::Calls& calls, double tick_rate) {
  out.add("  ").add(name);
  for (std::size_t i = name.size(); i < 10; ++i) out.add(' ');
  add_number(out, static_cast<double>(calls.calls), 0);
  add_number(out, seconds_of(calls, tick_rate), 6);
}

void add_row(base::TextBuffer& out, std::string_view name, const Statistics::Calls& calls, double tick_rate) {
  begin_row(out, name, calls, tick_rate);
  const double seconds = seconds_of(calls, tick_rate), megabytes = static_cast<double>(calls.bytes) / 1e6;
  add_number(out, megabytes, 6);
  add_number(out, seconds > 0 ? megabytes / seconds : 0, 3);
  add_number(out, calls.calls != 0 ? static_cast<double>(calls.bytes) / static_cast<double>(calls.calls) : 0, 0);
  out.add('\n');
}

}  // namespace

void say_figures(std::string_view path, const hints::StreamHints& hints, const Statistics& seen, double tick_rate) {
  base::Text<4096> out;
  out.add("pario: ").add(path).add(": ").add(hints.count).add(" buffers of ").add(hints.size).add(" bytes\n");
  out.add("                   Calls       Seconds     Megabytes          MB/s  Average size\n");
  Statistics::Calls total;
  for (const Statistics::Calls* calls : {&seen.open, &seen.read, &seen.write, &seen.close}) {
    total.calls += calls->calls;
    total.bytes += calls->bytes;
    total.ticks += calls->ticks;
  }
  begin_row(out, "Open", seen.open, tick_rate);
  out.add('\n');
  add_row(out, "Read", seen.read, tick_rate);
  add_row(out, "Write", seen.write, tick_rate);
  begin_row(out, "Close", seen.close, tick_rate);
  out.add('\n');
  add_row(out, "Total", total, tick_rate);
  add_row(out, "Sys Read", seen.system_read, tick_rate);
  add_row(out, "Sys Write", seen.system_write, tick_rate);
  out.add("  ").add(seen.buffers).add(" buffers used, ").add(seen.prefetches).add(" prefetches (");
  out.add(seen.wasted).add(" bytes wasted), ").add(seen.preflushes).add(" preflushes\n");
  base::say(out.view());
}

}  // namespace pario::stream
