#include <atomic>
#include <string_view>
#include <utility>

#include "base/base.hpp"
#include "mpiio/mpiio.hpp"
#include "pmpi/invocation.hpp"
#include "pmpi/weak.hpp"

namespace pario::pmpi {
namespace {

constexpr Word kErrOther = 16;  // MPI_ERR_OTHER of Open MPI and the standard ABI; any non-zero value is an error everywhere

std::atomic<bool> stopped{false};

template <std::size_t>
using WordAt = Word;

/// Calls a function with its words. Words beyond its parameters are harmless: the caller owns their stack slots, and unused argument
/// registers are scratch.
template <std::size_t... I>
Word call_with(void* function, const Word* words, std::index_sequence<I...>) {
  return reinterpret_cast<Word (*)(WordAt<I>...)>(function)(words[I]...);
}

Word forward(void* function, const Word* words, std::size_t count) {
  if (count <= 6) return call_with(function, words, std::make_index_sequence<6>());
  return call_with(function, words, std::make_index_sequence<kMaxArguments>());
}

Word answer_without_mpi(Id id) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    base::Text<256> text;
    text.add("MPI_")
        .add(kFunctions[static_cast<std::size_t>(id)].name)
        .add(" was called, but no loaded MPI library has it; it returned an error");
    trace::message(text.view());
  }
  return kErrOther;
}

}  // namespace

void Invocation::run() {
  start = trace::ticks();
  result = forward(real, arguments, function.args);
  end = trace::ticks();
}

namespace {

bool is_large(Variant variant) { return variant == Variant::large || variant == Variant::profiling_large; }

/// pario's own function, or null where it has none.
void* own_function(Id id, Variant variant) {
  static std::atomic<void*> found[static_cast<std::size_t>(Id::count)][2];
  const auto& function = kFunctions[static_cast<std::size_t>(id)];
  if (function.role != Role::file && function.role != Role::quiet) return nullptr;
  auto& place = found[static_cast<std::size_t>(id)][is_large(variant)];
  if (!place.load(std::memory_order_relaxed)) place = mpiio::replacement(function.name, is_large(variant));
  return place;
}

/// A call on its way: recorded where that is wanted.
struct Passing {
  Id id;
  Variant variant;
  Word* arguments;
  void* behind;

  const Function& function() const { return kFunctions[static_cast<std::size_t>(id)]; }
  Word forward_it() const { return forward(behind, arguments, function().args); }
  Word pass() const;
};

Word Passing::pass() const {
  if (!behind) return answer_without_mpi(id);
  const Role role = function().role;
  if (role == Role::quiet || !trace::on() || stopped.load(std::memory_order_relaxed)) return forward_it();
  const trace::Guard guard(role == Role::file ? trace::Guard::Kind::mpiio : trace::Guard::Kind::mpi);
  const Library* const mpi = guard.outermost() ? Library::get() : nullptr;
  if (!mpi) return forward_it();
  Invocation call{*mpi, function(), id, behind, is_large(variant), arguments};
  return role == Role::file ? do_file_io(call) : communicate(call);
}

/// Asks for MPI_THREAD_MULTIPLE where pario's own threads will need MPI. The program gets at least the level that it asked for.
void ask_for_threads(Passing& call) {
  static int provided = 0;
  const Library* const mpi = Library::get();
  if (!mpi || !mpiio::wants_threads()) return;
  if (call.id == Id::Init) {
    call.behind = real(Id::Init_thread, call.variant);
    call.arguments[3] = reinterpret_cast<Word>(&provided);
  }
  call.arguments[2] = static_cast<Word>(mpi->value(mpi::Constant::MPI_THREAD_MULTIPLE));
}

/// Whether other processes may learn something by a call.
bool tells_others(const Function& function) {
  return function.role != Role::file && function.role != Role::quiet && std::string_view(function.category) != "wait";
}

/// With pario's own MPI-IO: its functions in place of the MPI's, and its part in the beginning, the completing and the end of others.
Word pass_with_own_io(Passing call) {
  if (void* const own = own_function(call.id, call.variant)) call.behind = own;
  const auto& function = call.function();
  if (function.role == Role::init) {
    ask_for_threads(call);
    const Word result = call.pass();
    if (static_cast<int>(result) != 0) return result;
    restore_weak_references();
    mpiio::after_init();
    return result;
  }
  if (call.id == Id::Session_init) restore_weak_references();
  if (tells_others(function)) mpiio::before_telling_others();
  if (function.role == Role::finalize) mpiio::before_finalize();
  mpiio::before_completion(function.name, call.arguments);
  return mpiio::after_completion(function.name, call.arguments, call.pass());
}

}  // namespace

void* file_function(Id id) { return mpiio::enabled() ? own_function(id, Variant::profiling) : real(id, Variant::profiling); }

Word dispatch(Id id, Variant variant, Word* arguments) {
  const base::Unbuffered files;  // what an MPI opens, several ranks write
  const Passing call{id, variant, arguments, real(id, variant)};
  return mpiio::enabled() ? pass_with_own_io(call) : call.pass();
}

void after_fork() { stopped = true; }

}  // namespace pario::pmpi
