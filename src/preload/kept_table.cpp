#include "preload/kept_table.hpp"

namespace pario::preload::kept {
namespace {

constexpr std::uint64_t kPatienceNs = 30'000'000'000;  // for a thread that writes: storage may be slow

constinit std::atomic<int> workers{0};
[[gnu::tls_model("initial-exec")]] constinit thread_local bool works = false;

}  // namespace

constinit std::array<Place, kMost> places{};
constinit std::uint64_t lock = 0;
constinit std::atomic<std::uint32_t> in_use{0}, unwritten{0};
constinit thread_local bool inside = false;

void set(Place& place, State state) {
  if ((place.state == State::none) != (state == State::none)) in_use.fetch_add(state == State::none ? -1u : 1u);
  place.state = state;
}

void put(Place& place, State state) {
  if (state == State::none) set_unwritten(place, false);
  hold([&] { set(place, state); });
}

void set_unwritten(Place& place, bool whether) {
  if (place.unwritten.exchange(whether, std::memory_order_acq_rel) == whether) return;
  unwritten.fetch_add(whether ? 1u : -1u, std::memory_order_acq_rel);
}

Work::Work() : outer_(works) {
  works = true;
  workers.fetch_add(1, std::memory_order_acq_rel);
}

Work::~Work() {
  workers.fetch_sub(1, std::memory_order_acq_rel);
  works = outer_;
}

bool others_work() { return workers.load(std::memory_order_acquire) != 0; }

bool wait_for_others(std::uint64_t begin) {
  if (works || inside || base::monotonic_ns() - begin > kPatienceNs) return false;
  const timespec moment{0, 50'000};
  if (others_work()) base::system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, nullptr);
  return true;
}

void forget_table() {
  lock = 0;
  inside = works = false;
  workers.store(0, std::memory_order_relaxed);
  unwritten.store(0, std::memory_order_relaxed);
  for (Place& place : places) place.state = State::none;
  in_use.store(0, std::memory_order_relaxed);
}

}  // namespace pario::preload::kept
