#include "layers/buffering/buffering.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include "layers/buffering/descriptors.hpp"
#include "layers/buffering/processes.hpp"
#include "layers/buffering/signals.hpp"
#include "layers/buffering/streams.hpp"
#include "layers/buffering/transfers.hpp"
#include "layers/buffering/treatments.hpp"

namespace pario::buffering {
namespace {

enum class State : int { unknown, active, inactive };
constinit std::atomic<State> state{State::unknown};
constinit hints::HintSet settings{};

void ignore(std::string_view) {}

/// The last component of the path by which the program was executed; for a script with an
/// interpreter line, that of the script.
std::string_view program_name() {
  const auto* path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  const std::string_view name = path == nullptr ? "" : path;
  return name.substr(name.rfind('/') + 1);
}

bool denies_only(std::string_view globs) {
  while (globs.starts_with('!')) {
    const auto colon = globs.find(':');
    if (colon == globs.npos) return true;
    globs.remove_prefix(colon + 1);
  }
  return false;
}

/// True if a list of programs allows `name`. A list that only denies allows all others.
bool allows(std::string_view programs, std::string_view name) {
  base::Text<hints::kTextRoom + 2> list;
  list.add(programs).add(denies_only(programs) ? ":*" : "");
  return hints::matches(list.view(), name);
}

State read_settings() {
  hints::HintSet found = hints::defaults();
  hints::read_environment(found, environ, ignore);  // the tracer reports errors
  if (found.streams.view().empty() && found.iobuf_params.view().empty()) return State::inactive;
  if (!allows(found.streams_programs.view(), program_name())) return State::inactive;
  settings = found;
  buffers::set_memory_limit(settings.streams_memory);
  buffers::set_keeper(settings.streams_keeper.view());
  return State::active;
}

void report_error(std::string_view text) {
  if (settings.trace_messages) buffers::print_message(text);
}

// The variable of IOBUF comes second.
void check_settings() {
  hints::check_stream_specifications("PARIO_STREAMS", settings.streams.view(), report_error);
  hints::check_stream_specifications("IOBUF_PARAMS", settings.iobuf_params.view(), report_error);
}

}  // namespace

bool is_active() {
  State now = state.load(std::memory_order_acquire);
  if (now == State::unknown) {
    now = read_settings();
    state.store(now, std::memory_order_release);
  }
  return now == State::active;
}

#define PARIO_THIS_LAYER buffering
#include "layers/chain/treatment_of.def"

Setting find_setting(std::string_view path) {
  Setting setting;
  for (const hints::TextValue* all : {&settings.streams, &settings.iobuf_params}) {
    setting.specification = hints::stream_specification_of(all->view(), path);
    if (hints::stream_hints_of(setting.specification, path, setting.hints)) break;
  }
  return setting;
}

void start() {
  if (!is_active()) return;
  check_settings();
  catch_deadly_signals();
  set_standard_stream_buffers();
}

void before_fork() {
  restore_all_streams();
  flush_streams();  // the child would write the same bytes again
  buffers::before_fork();
}

void after_fork_in_parent() { buffers::after_fork_in_parent(); }

void after_fork_in_child() {
  forget_descriptors();
  reset_streams_in_child();
}

void stop() {
  if (!is_active()) return;
  state.store(State::inactive, std::memory_order_release);
  buffers::end_buffering();
}

}  // namespace pario::buffering
