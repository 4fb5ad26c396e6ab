#include "layers/handles/table.hpp"

#include "core/base/sleep.hpp"

namespace pario::handles {
namespace {

constexpr std::uint64_t kPatienceNs = 30'000'000'000;  // storage may be slow

constinit std::atomic<int> busy_threads{0};
[[gnu::tls_model("initial-exec")]] constinit thread_local bool is_busy = false;

}  // namespace

constinit std::array<Entry, kMaxEntries> table{};
constinit std::uint64_t table_lock = 0;
constinit std::atomic<std::uint32_t> used_entries{0}, pending_entries{0};
constinit thread_local bool has_table_lock = false;

void set_state(Entry& entry, State state) {
  if ((entry.state == State::none) != (state == State::none))
    used_entries.fetch_add(state == State::none ? -1u : 1u);
  entry.state = state;
}

void release(Entry& entry, State state) {
  if (state == State::none) set_pending(entry, false);
  with_table([&] { set_state(entry, state); });
}

void set_pending(Entry& entry, bool pending) {
  if (entry.pending.exchange(pending, std::memory_order_acq_rel) == pending) return;
  pending_entries.fetch_add(pending ? 1u : -1u, std::memory_order_acq_rel);
}

BusyMark::BusyMark() : outer_(is_busy) {
  is_busy = true;
  busy_threads.fetch_add(1, std::memory_order_acq_rel);
}

BusyMark::~BusyMark() {
  busy_threads.fetch_sub(1, std::memory_order_acq_rel);
  is_busy = outer_;
}

bool is_any_thread_busy() { return busy_threads.load(std::memory_order_acquire) != 0; }

bool wait_for_busy_threads(std::uint64_t begin) {
  if (is_busy || has_table_lock || base::monotonic_ns() - begin > kPatienceNs) return false;
  if (is_any_thread_busy()) base::sleep_ns(50'000);
  return true;
}

void reset_table() {
  table_lock = 0;
  has_table_lock = is_busy = false;
  busy_threads.store(0, std::memory_order_relaxed);
  pending_entries.store(0, std::memory_order_relaxed);
  for (Entry& entry : table) entry.state = State::none;
  used_entries.store(0, std::memory_order_relaxed);
}

}  // namespace pario::handles
