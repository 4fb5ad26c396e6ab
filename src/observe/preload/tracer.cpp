#include "observe/preload/tracer.hpp"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/base/base.hpp"
#include "core/trace/facts.hpp"
#include "core/trace/trace.hpp"
#include "layers/buffering/buffering.hpp"
#include "layers/caching/caching.hpp"
#include "layers/chain/chain.hpp"
#include "layers/handles/handles.hpp"
#include "layers/subfiles/subfiles.hpp"
#include "observe/adios2/adios2.hpp"
#include "observe/hdf5/hdf5.hpp"
#include "observe/netcdf/netcdf.hpp"
#include "observe/pmpi/pmpi.hpp"
#include "observe/preload/characters.hpp"
#include "observe/preload/descriptions.hpp"
#include "observe/preload/mappings.hpp"
#include "observe/preload/process.hpp"
#include "observe/preload/requests.hpp"
#include "observe/preload/rings.hpp"
#include "observe/preload/settings.hpp"
#include "observe/preload/unseen_rings.hpp"

// The bounds of the zeroed tables of this library, defined by the linker.
extern "C" [[gnu::visibility("hidden")]] std::byte __bss_start[], _end[];

namespace pario::preload {

constinit std::atomic<State> state{State::unknown};

namespace {

constinit std::atomic<long> owner{0};  // the process to which these tables belong
constinit std::atomic<int> exit_status{0};

/// Returns all traced functions, by id.
std::span<const trace::FunctionInfo> all_functions() {
  static constinit std::array<trace::FunctionInfo, trace::kMaxFunctions> functions{};
  std::ranges::copy(symbols::kFunctions, functions.begin());
  pmpi::fill(functions);
  hdf5::fill(functions);
  netcdf::fill(functions);
  adios2::fill(functions);
  return functions;
}

/// Finds the row of a file for a layer of the chain; null: it is not traced.
trace::Record* record_for_layers(trace::Layer layer, std::string_view path, int descriptor) {
  trace::Record* record = nullptr;
  if (active()) in_tracer([&] { record = record_of(layer, path, descriptor); });
  return record;
}

void look_around() {
  mappings::sample(false);
  unseen_rings::look(false);
}

State begin() {
  trace::Config config;
  const bool wanted = settings::read(config);
  config.at_anchor = look_around;
  config.at_end = [] {
    mappings::sample(true);
    rings::count_all_unseen();
    unseen_rings::look(true);
  };
  if (wanted) trace::start(config, all_functions());
  if (!settings::errors().empty()) trace::message(settings::errors());
  if (!wanted) return State::off;
  chain::set_record_finder(record_for_layers);
  if (caching::is_active()) trace::set_status_reader(caching::read_status);
  owner.store(base::system_call(SYS_getpid), std::memory_order_relaxed);
  return trace::on() ? State::on : State::off;
}

void finish_at_exit(int status, void*) {
  exit_status.store(status, std::memory_order_relaxed);
  if (!active()) return;
  count_pending_characters();
  finish_tracing(kEndExit, status);
}

/// Prepares the layers for a fork, also for one by the C library itself, as in daemon(). The last
/// of the handlers before a fork, and the first ones after it.
void follow_forks() {
  if (subfiles::is_active()) pthread_atfork(nullptr, nullptr, subfiles::after_fork_in_child);
  if (!buffering::is_active()) return;
  const auto before = [] {
    if (pario_in_vfork_child != 0) return;
    if (handles::is_active()) handles::before_fork();
    buffering::before_fork();
  };
  const auto in_child = [] {
    if (pario_in_vfork_child != 0) return;
    if (handles::is_active()) handles::after_fork_in_child();
    buffering::after_fork_in_child();
  };
  const auto in_parent = [] {
    if (pario_in_vfork_child == 0) buffering::after_fork_in_parent();
  };
  pthread_atfork(before, in_parent, in_child);
}

/// Excludes this library's tables from core dumps: mostly zeros, but 28 MB of address space.
void leave_tables_out_of_core_dumps() {
  const auto end = reinterpret_cast<std::uintptr_t>(_end);
  base::leave_out_of_core_dumps(__bss_start, end - reinterpret_cast<std::uintptr_t>(__bss_start));
}

// Handlers that the program registers later run earlier. Destructors of libraries may run after
// them: finish_again counts their calls.
[[gnu::constructor]] void register_handlers() {
  // Builds the state of first calls now: a child forked while a thread builds it would wait
  // forever.
  chain::build(symbols::Symbol::open);
  chain::build(symbols::Symbol::syscall);
  buffering::start();
  follow_forks();
  leave_tables_out_of_core_dumps();
  if (!active()) return;
  on_exit(finish_at_exit, nullptr);
  pthread_atfork(nullptr, descriptors::share_all, begin_child);
}

[[gnu::destructor]] void finish_again() {
  handles::stop();
  buffering::stop();
  if (active()) finish_tracing(kEndExit, exit_status.load(std::memory_order_relaxed));
}

}  // namespace

void finish_tracing(std::uint64_t end_kind, int end_code) { trace::finish(end_kind, end_code); }

bool start() {
  const base::SavedErrno saved;
  State expected = State::unknown;
  if (!state.compare_exchange_strong(expected, State::starting, std::memory_order_acq_rel))
    return expected == State::on;
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
  unseen_rings::forget_all();
  trace::restart_after_fork();
  descriptors::share_all();
  descriptors::renew_records();
  mappings::renew_records();
  posix_aio::forget_all();
  libaio::forget_all();
  rings::forget_all();
  pmpi::after_fork();
  hdf5::after_fork();
  netcdf::after_fork();
  adios2::after_fork();
  look_around();  // last: other threads of the parent may have held the locks of these tables
}

}  // namespace pario::preload
