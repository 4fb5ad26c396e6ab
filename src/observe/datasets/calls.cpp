#include <atomic>

#include "observe/datasets/datasets.hpp"

namespace pario::datasets {

void Call::run(trace::CallStart shown) {
  shown.function = number;
  start = trace::ticks();
  const trace::ShownCall shown_call(shown, start);
  result = forward(real, words, arguments);
  end = trace::ticks();
  inner = inside.inner();
  shown_call.end();
}

void count(const Call& call, trace::Record* record, const Outcome& outcome) {
  const trace::Guard guard;
  if (!guard.outermost()) return;
  trace::Call entry{.function = call.number,
                    .op = call.op,
                    .start = call.start,
                    .end = call.start + (call.end - call.start) / outcome.datasets};
  entry.asked = outcome.bytes;
  entry.result = call.failed ? -1 : static_cast<std::int64_t>(outcome.bytes);
  if (outcome.is_collective) entry.flags = trace::kCollective;
  if (record == nullptr) return trace::count_call(entry, trace::kNoFile, 0);
  trace::count(record, entry);
  trace::InnerCalls inner = call.inner;
  for (auto* part :
       {&inner.ticks, &inner.reads, &inner.bytes_read, &inner.writes, &inner.bytes_written})
    *part /= outcome.datasets;
  trace::add_inner(record, entry.op, inner);
  if (outcome.is_nonblocking) trace::add(record, &trace::Record::nonblocking_calls, 1);
  if (outcome.chunks != 0)
    trace::add(
        record,
        entry.op == trace::Op::read ? &trace::Record::chunks_read : &trace::Record::chunks_written,
        outcome.chunks);
}

trace::CallStart show_on(const Object& object) {
  if (object.record == nullptr) return {};
  return {.file = trace::index_of(object.record)};
}

void report_missing(const char* function) {
  static constinit std::atomic<bool> reported{false};
  if (reported.exchange(true)) return;
  base::Text<256> text;
  text.add(function).add(" was called, but no loaded library has it; it returned an error");
  trace::message(text.view());
}

}  // namespace pario::datasets
