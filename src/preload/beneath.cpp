#include "preload/beneath.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "preload/beneath_data.hpp"
#include "preload/beneath_open.hpp"
#include "preload/beneath_process.hpp"
#include "preload/beneath_stdio.hpp"
#include "preload/descriptions.hpp"
#include "preload/tracer.hpp"
#include "trace/trace.hpp"

namespace pario::preload::beneath {

constinit std::atomic<stream::Handle*> handles[kCapacity] = {};
constinit StandIns stand_ins;

namespace {

enum class Wish : int { unknown, yes, no };
constinit std::atomic<Wish> wish{Wish::unknown};
constinit hints::HintSet chosen{};
constinit std::atomic<int> end_of_known{0};

void ignore(std::string_view) {}

/// The last part of the name by which the program was executed: of a script that names its interpreter, the script's.
std::string_view program_name() {
  const auto* path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  const std::string_view name = path == nullptr ? "" : path;
  return name.substr(name.rfind('/') + 1);
}

bool only_denies(std::string_view globs) {
  while (globs.starts_with('!')) {
    const auto colon = globs.find(':');
    if (colon == globs.npos) return true;
    globs.remove_prefix(colon + 1);
  }
  return false;
}

/// A list that only denies allows what it does not name.
bool allows(std::string_view programs, std::string_view name) {
  base::Text<hints::kTextRoom + 2> list;
  list.add(programs).add(only_denies(programs) ? ":*" : "");
  return hints::matches(list.view(), name);
}

Wish read_wish() {
  hints::HintSet found = hints::defaults();
  hints::read_environment(found, environ, ignore);  // complaints are the tracer's business
  if (found.streams.view().empty() && found.iobuf_params.view().empty()) return Wish::no;
  if (!allows(found.streams_programs.view(), program_name())) return Wish::no;
  chosen = found;
  stream::set_memory_limit(chosen.streams_memory);
  stream::set_keeper(chosen.streams_keeper.view());
  return Wish::yes;
}

void complain(std::string_view text) {
  if (chosen.trace_messages) stream::tell(text);
}

// The names that IOBUF's users know come second.
void check_settings() {
  hints::check_stream_specifications("PARIO_STREAMS", chosen.streams.view(), complain);
  hints::check_stream_specifications("IOBUF_PARAMS", chosen.iobuf_params.view(), complain);
}

void die_by(int signal) {
  stream::rescue();
  rescue_streams();
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;
  sigaction(signal, &plain, nullptr);
  raise(signal);
}

/// Signals that would end the process without a word; a program that has its own handler keeps it.
void catch_deadly_signals() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU}) {
    struct sigaction now, ours = {};
    if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    ours.sa_handler = die_by;
    ours.sa_flags = SA_NODEFER;
    sigaction(signal, &ours, nullptr);
  }
}

void* treatment_of(Symbol symbol) {
  switch (symbol) {
#define PARIO_BENEATH(name, treatment, ...) \
  case Symbol::name:                        \
    return reinterpret_cast<void*>(&treatment<Symbol::name, __VA_ARGS__>::call);
#include "preload/beneath.def"
#undef PARIO_BENEATH
    default:
      return nullptr;
  }
}

/// Another descriptor that stands for the same handle; -1: there is none.
int other_than(int descriptor, const stream::Handle* handle) {
  for (int other = 0; other < end_of_descriptors(); ++other)
    if (other != descriptor && handles[other].load(std::memory_order_relaxed) == handle) return other;
  return -1;
}

void put(int descriptor, stream::Handle* handle) {
  handles[descriptor].store(handle, std::memory_order_release);
  int end = end_of_known.load(std::memory_order_relaxed);
  while (end <= descriptor && !end_of_known.compare_exchange_weak(end, descriptor + 1, std::memory_order_relaxed)) {
  }
}

bool is_inherited(int descriptor) {
  const long flags = base::system_call(SYS_fcntl, descriptor, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

bool identify(int directory, const char* path, struct stat& status) {
  if (path == nullptr || stream::idle() || pario_in_vfork_child != 0) return false;
  return base::system_call(SYS_newfstatat, directory, path, &status, AT_EMPTY_PATH) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

bool wanted() {
  Wish now = wish.load(std::memory_order_acquire);
  if (now == Wish::unknown) {
    now = read_wish();
    wish.store(now, std::memory_order_release);
  }
  return now == Wish::yes;
}

void* stand_in(Symbol symbol, void* function) { return wanted() ? stand_ins.put(symbol, treatment_of(symbol), function) : function; }

Wished wished_of(std::string_view path) {
  Wished wished;
  for (const hints::TextValue* all : {&chosen.streams, &chosen.iobuf_params}) {
    wished.specification = hints::stream_specification_of(all->view(), path);
    if (hints::stream_hints_of(wished.specification, path, wished.hints)) break;
  }
  return wished;
}

stream::Origin origin_of(const Wished& wished, trace::Layer layer, std::string_view path, int descriptor) {
  stream::Origin origin{.specification = wished.specification};
  if (active()) in_tracer([&] { origin.record = record_of(layer, path, descriptor); });
  return origin;
}

void begin() {
  if (!wanted()) return;
  check_settings();
  catch_deadly_signals();
  prepare_standard_streams();
}

void end() {
  if (!wanted()) return;
  wish.store(Wish::no, std::memory_order_release);
  stream::end();
}

std::optional<std::uint64_t> position(int descriptor) {
  stream::Handle* handle = handle_of(descriptor);
  return handle == nullptr ? std::nullopt : std::optional(stream::position(*handle));
}

int end_of_descriptors() { return end_of_known.load(std::memory_order_relaxed); }

void enter(int descriptor, int flags, std::string_view path, std::uint64_t since) {
  if (descriptor < 0 || descriptor >= kCapacity || !wanted()) return;
  const Wished wished = wished_of(path);
  if (wished.specification.empty()) return;
  stream::Origin origin = origin_of(wished, trace::Layer::posix, path, descriptor);
  origin.since = since;
  if (base::Unbuffered::active()) return stream::note(origin, wished.hints, Reason::own_mpiio);
  stream::Handle* handle = stream::open(descriptor, flags, wished.hints, path, origin);
  if (handle == nullptr) return;
  put(descriptor, handle);
  if (is_open_as_stream(descriptor)) stream::leave(*handle, Reason::stdio);
}

void share(int original, int copy) {
  stream::Handle* handle = handle_of(original);
  if (handle == nullptr || copy < 0 || original == copy) return;
  if (copy >= kCapacity) return stream::leave(*handle, Reason::many);
  stream::share(*handle);
  put(copy, handle);
}

int leave_descriptor(int descriptor) {
  stream::Handle* handle = handle_of(descriptor);
  if (handle == nullptr) return 0;
  handles[descriptor].store(nullptr, std::memory_order_release);
  return static_cast<int>(-stream::close(*handle, other_than(descriptor, handle)));
}

void settle(int directory, const char* path) {
  struct stat status;
  if (identify(directory, path, status)) stream::flush(status.st_dev, status.st_ino);
}

bool settle(const struct stat& told) {
  return S_ISREG(told.st_mode) && pario_in_vfork_child == 0 && stream::flush(told.st_dev, told.st_ino);
}

void leave(int directory, const char* path, Reason reason) {
  struct stat status;
  if (identify(directory, path, status)) stream::leave(status.st_dev, status.st_ino, reason);
}

void resume_all() {
  for (int descriptor = 0; descriptor < end_of_descriptors(); ++descriptor)
    if (stream::Handle* handle = handle_of(descriptor)) stream::resume(*handle);
}

void forget_all() {
  for (int descriptor = 0; descriptor < end_of_descriptors(); ++descriptor) handles[descriptor].store(nullptr, std::memory_order_relaxed);
  base::current_directory::forget_after_fork();
  stream::after_fork_in_child();
}

void leave_in_vfork_child(int descriptor) {
  if (pario_in_vfork_child == 0 || static_cast<unsigned>(descriptor) >= kCapacity) return;
  const base::SavedErrno saved;
  if (stream::Handle* handle = handles[descriptor].load(std::memory_order_acquire)) stream::leave(*handle, Reason::inheritance);
}

void leave_inherited() {
  if (pario_in_vfork_child == 0) {
    stream::flush_all();
    stream::before_spawn();
  }
  for (int descriptor = 0; descriptor < end_of_descriptors(); ++descriptor) {
    stream::Handle* handle = handles[descriptor].load(std::memory_order_acquire);
    if (handle != nullptr && is_inherited(descriptor) && stream::stands_for(*handle, descriptor))
      stream::leave(*handle, Reason::inheritance);
  }
}

}  // namespace pario::preload::beneath
