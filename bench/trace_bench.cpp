// The cost of one traced call: count(), alone and with events, and the encoding of events.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <vector>

#include "core/trace/columns.hpp"
#include "core/trace/trace.hpp"

namespace {

using namespace pario::trace;

constexpr FunctionInfo kFunctions[] = {{"write", "posix", Op::write}, {"pread", "posix", Op::read}};

/// Starts a log in a new directory, on tmpfs if there is one. Tracing is started once per process:
/// by the first benchmark.
void trace_into_scratch(std::uint64_t events_limit) {
  if (on()) finish(0, 0);
  std::string directory = std::filesystem::exists("/dev/shm") ? "/dev/shm/pario-bench-XXXXXX"
                                                              : "/tmp/pario-bench-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) std::abort();
  start({.directory = directory.c_str(), .events_limit = events_limit}, kFunctions);
  std::filesystem::remove_all(directory);  // tracing continues into the unlinked log
}

Call call_at(std::uint64_t offset, std::uint64_t start) {
  Call call{.function = 0, .op = Op::write, .start = start, .end = 0};
  call.offset = offset;
  call.asked = 512;
  call.result = 512;
  return call;
}

/// Measures everything that a wrapper adds: guard, two reads of the clock, the count.
void count_calls(benchmark::State& state, std::uint64_t events_limit, bool random) {
  trace_into_scratch(events_limit);
  Record* record = find_record(Layer::posix, "/data/out.dat", nullptr, nullptr);
  std::minstd_rand offsets(1);
  std::uint64_t next = 0;
  for (auto _ : state) {
    const Guard guard;
    Call call = call_at(random ? std::uint64_t{offsets()} * 512 : next, ticks());
    next += 512;
    call.end = ticks();
    count(record, call);
  }
}

void BM_Ticks(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ticks());
}
BENCHMARK(BM_Ticks);

void BM_CountersOnly(benchmark::State& state) { count_calls(state, 0, false); }
BENCHMARK(BM_CountersOnly);

void BM_EventsSequential(benchmark::State& state) {
  count_calls(state, std::uint64_t{1} << 40, false);
}
BENCHMARK(BM_EventsSequential);

void BM_EventsRandom(benchmark::State& state) { count_calls(state, std::uint64_t{1} << 40, true); }
BENCHMARK(BM_EventsRandom);

void BM_FindKnownRecord(benchmark::State& state) {
  trace_into_scratch(0);
  find_record(Layer::posix, "/scratch/project/run/output.000123.dat", nullptr, nullptr);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        find_record(Layer::posix, "/scratch/project/run/output.000123.dat", nullptr, nullptr));
}
BENCHMARK(BM_FindKnownRecord);

void BM_EncodeColumns(benchmark::State& state) {
  std::vector<Event> events(8192);
  for (std::size_t i = 0; i < events.size(); ++i)
    events[i] = {i * 1000 + i % 7, 700 + i % 13, i * 512, 512, 3, 1, 0, 1, 0, 0};
  std::vector<std::byte> columns(events.size() * sizeof(Event));
  for (auto _ : state) encode_columns(events, columns.data());
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * events.size()));
}
BENCHMARK(BM_EncodeColumns);

}  // namespace
