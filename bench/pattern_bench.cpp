// Moving pieces between memory and windows of a file, beside memcpy of the same bytes. Every fourth
// piece of the file is ours.
#include <benchmark/benchmark.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "core/pattern/pattern.hpp"

namespace {

using namespace pario::pattern;
using pario::base::Extent;

constexpr std::uint64_t kBytes = std::uint64_t{8} << 20, kWindow = std::uint64_t{1} << 20,
                        kRanks = 4;

enum class Memory { contiguous, strided, misaligned };

struct Setup {
  Setup(std::uint64_t piece, Memory memory) : user(4 * kBytes, std::byte{1}), image(kWindow) {
    access.buffer = user.data();
    if (memory == Memory::strided)
      access.memory = TypeMap::block(piece).with_extent(0, static_cast<std::int64_t>(2 * piece));
    if (memory == Memory::misaligned)
      access.memory =
          TypeMap::block(piece * 3 / 4).with_extent(0, static_cast<std::int64_t>(piece));
    access.view.filetype =
        TypeMap::block(piece).with_extent(0, static_cast<std::int64_t>(kRanks * piece));
    access.bytes = kBytes;
    granule = summarise(access).granule;
    words.resize(coverage_words(kWindow, granule));
  }
  /// Walks once through the whole access, window by window.
  template <class Move>
  void each_window(Move move) {
    Walker walker(access);
    for (std::uint64_t at = 0; at < kBytes * kRanks; at += kWindow)
      benchmark::DoNotOptimize(move(walker, Extent::at(at, kWindow)));
  }

  std::vector<std::byte> user, image;
  std::vector<std::uint64_t> words;
  Access access;
  std::uint64_t granule = 1;
};

void report(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kBytes));
}

void gather(benchmark::State& state, Memory memory, bool marks) {
  Setup setup(static_cast<std::uint64_t>(state.range(0)), memory);
  const Coverage coverage{marks ? setup.words.data() : nullptr, setup.granule};
  for (auto _ : state)
    setup.each_window([&](Walker& walker, Extent stretch) {
      return walker.gather(stretch, setup.image.data(), coverage);
    });
  report(state);
}
#define PIECES ->Arg(8)->Arg(64)->Arg(256)->Arg(1024)->Arg(4096)
BENCHMARK_CAPTURE(gather, contiguous, Memory::contiguous, true) PIECES;
BENCHMARK_CAPTURE(gather, unmarked, Memory::contiguous, false) PIECES;
BENCHMARK_CAPTURE(gather, strided, Memory::strided, true) PIECES;
BENCHMARK_CAPTURE(gather, misaligned, Memory::misaligned, true) PIECES;

void scatter(benchmark::State& state, Memory memory) {
  Setup setup(static_cast<std::uint64_t>(state.range(0)), memory);
  for (auto _ : state)
    setup.each_window([&](Walker& walker, Extent stretch) {
      return walker.scatter(stretch, setup.image.data());
    });
  report(state);
}
BENCHMARK_CAPTURE(scatter, contiguous, Memory::contiguous) PIECES;
BENCHMARK_CAPTURE(scatter, strided, Memory::strided) PIECES;

/// Blocks at irregular places: no strips, every piece is stepped to.
void gather_listed(benchmark::State& state) {
  const std::uint64_t piece = static_cast<std::uint64_t>(state.range(0));
  std::vector<std::int64_t> places;
  std::vector<std::uint64_t> counts{piece};
  for (std::uint64_t i = 0; i < kBytes / piece; ++i)
    places.push_back(static_cast<std::int64_t>((i * kRanks + i % 3) * piece));
  Setup setup(piece, Memory::contiguous);
  setup.access.view.filetype = TypeMap::make_indexed(TypeMap::block(1), places, counts);
  const Coverage coverage{setup.words.data(), setup.granule};
  for (auto _ : state)
    setup.each_window([&](Walker& walker, Extent stretch) {
      return walker.gather(stretch, setup.image.data(), coverage);
    });
  report(state);
}
BENCHMARK(gather_listed) PIECES;

void mark(benchmark::State& state) {
  Setup setup(static_cast<std::uint64_t>(state.range(0)), Memory::contiguous);
  const Coverage coverage{setup.words.data(), setup.granule};
  for (auto _ : state)
    setup.each_window(
        [&](Walker& walker, Extent stretch) { return walker.mark(stretch, coverage); });
  report(state);
}
BENCHMARK(mark) PIECES;

void coverage_runs(benchmark::State& state) {
  std::vector<std::uint64_t> words(coverage_words(kWindow, 64), ~std::uint64_t{0});
  const std::vector<Coverage> coverages(static_cast<std::size_t>(state.range(0)),
                                        Coverage{words.data(), 64});
  for (auto _ : state) {
    CoverageRuns runs(Extent::at(0, kWindow), coverages);
    while (!runs.next().empty()) {
    }
  }
}
BENCHMARK(coverage_runs)->Arg(1)->Arg(16);

/// The same bytes into the same number of bytes of window, in one copy per window.
void copy_whole(benchmark::State& state) {
  std::vector<std::byte> user(4 * kBytes, std::byte{1}), image(kWindow);
  for (auto _ : state)
    for (std::uint64_t at = 0; at < kBytes; at += kWindow / kRanks) {
      std::memcpy(image.data() + at % kWindow, user.data() + at, kWindow / kRanks);
      benchmark::ClobberMemory();
    }
  report(state);
}
BENCHMARK(copy_whole);

/// One memcpy per piece, with nothing around it.
void copy_pieces(benchmark::State& state) {
  const std::uint64_t piece = static_cast<std::uint64_t>(state.range(0));
  std::vector<std::byte> user(4 * kBytes, std::byte{1}), image(kWindow);
  for (auto _ : state)
    for (std::uint64_t at = 0; at < kBytes; at += piece) {
      std::memcpy(image.data() + at * kRanks % kWindow, user.data() + at, piece);
      benchmark::ClobberMemory();
    }
  report(state);
}
BENCHMARK(copy_pieces) PIECES;

void run_on(pthread_t thread, int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  pthread_setaffinity_np(thread, sizeof set, &set);
}

/// Fills a window that another processor copies each time; measures one of the two.
void hand_over(benchmark::State& state, Stores stores, bool times_filling) {
  std::vector<std::byte> user(kWindow, std::byte{1}), image(kWindow), taken(kWindow);
  std::atomic<int> turn = 0;  // 1: the copying thread's; -1: the end
  run_on(pthread_self(), 0);
  std::thread taker([&] {
    for (int now = turn; now >= 0; now = turn) {
      if (now == 0) continue;
      std::memcpy(taken.data(), image.data(), kWindow);
      turn = 0;
    }
  });
  run_on(taker.native_handle(), 1);
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    if (stores == Stores::cached)
      std::memcpy(image.data(), user.data(), kWindow);
    else
      copy_past_caches(image.data(), user);
    const auto filled = std::chrono::steady_clock::now();
    turn = 1;
    while (turn != 0) continue;
    const auto end = std::chrono::steady_clock::now();
    state.SetIterationTime(
        std::chrono::duration<double>(times_filling ? filled - begin : end - filled).count());
  }
  turn = -1;
  taker.join();
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kWindow));
}
BENCHMARK_CAPTURE(hand_over, fill_cached, Stores::cached, true)->UseManualTime();
BENCHMARK_CAPTURE(hand_over, fill_past_caches, Stores::past_caches, true)->UseManualTime();
BENCHMARK_CAPTURE(hand_over, take_cached, Stores::cached, false)->UseManualTime();
BENCHMARK_CAPTURE(hand_over, take_past_caches, Stores::past_caches, false)->UseManualTime();

}  // namespace
