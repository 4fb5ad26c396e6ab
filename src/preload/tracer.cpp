#include "preload/tracer.hpp"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/base.hpp"
#include "pmpi/pmpi.hpp"
#include "preload/beneath.hpp"
#include "preload/characters.hpp"
#include "preload/descriptions.hpp"
#include "preload/kept.hpp"
#include "preload/mappings.hpp"
#include "preload/process.hpp"
#include "preload/settings.hpp"
#include "preload/symbols.hpp"
#include "trace/trace.hpp"

// Of this library: the linker defines them for each.
extern "C" [[gnu::visibility("hidden")]] std::byte __bss_start[], _end[];

namespace pario::preload {

constinit std::atomic<State> state{State::unknown};
constinit thread_local int pario_in_vfork_child = 0;

namespace {

constinit std::atomic<long> owner{0};  // the process these tables belong to
constinit std::atomic<int> exit_status{0};

/// The functions of all doors, by id.
std::span<const trace::FunctionInfo> all_functions() {
  static constinit std::array<trace::FunctionInfo, trace::kMaxFunctions> functions{};
  std::copy(kFunctions.begin(), kFunctions.end(), functions.begin());
  pmpi::fill(functions);
  return functions;
}

State begin() {
  trace::Config config;
  const bool wanted = settings::read(config);
  if (wanted) trace::start(config, all_functions());
  if (!settings::complaints().empty()) trace::message(settings::complaints());
  if (!wanted) return State::off;
  owner.store(base::system_call(SYS_getpid), std::memory_order_relaxed);
  return trace::on() ? State::on : State::off;
}

void finish_at_exit(int status, void*) {
  exit_status.store(status, std::memory_order_relaxed);
  if (!active()) return;
  count_waiting_characters();
  trace::finish(kEndExit, status);
}

/// The tables of this library are zeros for the most part, but 28 MB of address space.
void leave_tables_out_of_core_dumps() { base::leave_out_of_core_dumps(__bss_start, static_cast<std::size_t>(_end - __bss_start)); }

// Handlers of the program, registered later than ours, run earlier; destructors of libraries may still follow: see finish_again.
[[gnu::constructor]] void register_handlers() {
  resolve(Symbol::open);  // what the first call of its kind makes: a child forked while a thread makes it would wait for ever
  beneath::begin();
  leave_tables_out_of_core_dumps();
  if (!active()) return;
  on_exit(finish_at_exit, nullptr);
  pthread_atfork(nullptr, descriptors::share_all, begin_child);
}

[[gnu::destructor]] void finish_again() {
  kept::end();
  beneath::end();
  if (active()) trace::finish(kEndExit, exit_status.load(std::memory_order_relaxed));
}

}  // namespace

bool start() {
  const base::SavedErrno saved;
  State expected = State::unknown;
  if (!state.compare_exchange_strong(expected, State::starting, std::memory_order_acq_rel)) return expected == State::on;
  const State reached = begin();
  state.store(reached, std::memory_order_release);
  return reached == State::on;
}

void begin_child() {
  const base::SavedErrno saved;
  const long self = base::system_call(SYS_getpid);
  if (!active() || owner.exchange(self, std::memory_order_relaxed) == self) return;
  const trace::Guard guard;
  base::current_directory::forget_after_fork();
  trace::restart_after_fork();
  descriptors::share_all();
  descriptors::renew_records();
  mappings::renew_records();
  pmpi::after_fork();
}

}  // namespace pario::preload
