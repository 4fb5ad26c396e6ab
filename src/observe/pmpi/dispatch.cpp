#include <atomic>
#include <string_view>

#include "core/base/base.hpp"
#include "core/symbols/words.hpp"
#include "observe/pmpi/invocation.hpp"
#include "observe/pmpi/weak.hpp"
#include "parallel/mpiio/mpiio.hpp"

namespace pario::pmpi {
namespace {

// MPI_ERR_OTHER of Open MPI and the standard ABI; in every MPI, a non-zero value is an error.
constexpr Word kErrOther = 16;

std::atomic<bool> stopped{false};

/// Reports the first call without an MPI, and returns an error.
Word fail_without_mpi(Id id) {
  static std::atomic<bool> reported{false};
  if (!reported.exchange(true)) {
    base::Text<256> text;
    text.add("MPI_")
        .add(kFunctions[static_cast<std::size_t>(id)].name)
        .add(" was called, but no loaded MPI library has it; it returned an error");
    trace::message(text.view());
  }
  return kErrOther;
}

/// Forwards a call. With pario's own MPI-IO, calls that complete requests wait for pario's first.
Word forward_completed(const Function& function, void* behind, Word* arguments) {
  if (function.role == Role::file || !mpiio::is_enabled())
    return symbols::forward(behind, arguments, function.args);
  mpiio::before_completion(function.name, arguments);
  return mpiio::after_completion(function.name, arguments,
                                 symbols::forward(behind, arguments, function.args));
}

}  // namespace

void Invocation::run() {
  start = trace::ticks();
  const trace::InProgress in_progress(shown, start);
  result = forward_completed(function, real, arguments);
  end = trace::ticks();
}

namespace {

bool is_large(Variant variant) {
  return variant == Variant::large || variant == Variant::profiling_large;
}

/// Finds the function of pario's MPI-IO; null: none.
void* own_function(Id id, Variant variant) {
  static std::atomic<void*> found[static_cast<std::size_t>(Id::count)][2];
  const auto& function = kFunctions[static_cast<std::size_t>(id)];
  if (function.role != Role::file && function.role != Role::quiet) return nullptr;
  auto& place = found[static_cast<std::size_t>(id)][is_large(variant)];
  if (!place.load(std::memory_order_relaxed))
    place = mpiio::replacement(function.name, is_large(variant));
  return place;
}

/// A call that is forwarded, and recorded if the process is traced.
struct ForwardedCall {
  Id id;
  Variant variant;
  Word* arguments;
  void* behind;

  const Function& function() const { return kFunctions[static_cast<std::size_t>(id)]; }
  Word forward_unrecorded() const { return forward_completed(function(), behind, arguments); }
  Word run() const;
};

Word ForwardedCall::run() const {
  if (!behind) return fail_without_mpi(id);
  const Role role = function().role;
  if (role == Role::quiet || !trace::on() || stopped.load(std::memory_order_relaxed))
    return forward_unrecorded();
  const trace::Guard guard(role == Role::file ? trace::Guard::Kind::mpiio
                                              : trace::Guard::Kind::mpi);
  const Library* const mpi = guard.outermost() ? Library::get() : nullptr;
  if (!mpi) return forward_unrecorded();
  Invocation call{*mpi, function(), id, behind, is_large(variant), arguments};
  return role == Role::file ? do_file_io(call) : communicate(call);
}

/// Requests MPI_THREAD_MULTIPLE if pario's own threads will call MPI. The program gets at least the
/// level that it requests.
void request_threads(ForwardedCall& call) {
  static int provided = 0;
  const Library* const mpi = Library::get();
  if (!mpi || !mpiio::wants_threads()) return;
  if (call.id == Id::Init) {
    call.behind = real(Id::Init_thread, call.variant);
    call.arguments[3] = reinterpret_cast<Word>(&provided);
  }
  call.arguments[2] = static_cast<Word>(mpi->value(mpi::Constant::MPI_THREAD_MULTIPLE));
}

/// True for calls that may send information to other processes.
bool communicates(const Function& function) {
  return function.role != Role::quiet && std::string_view(function.category) != "wait";
}

/// Runs a call with pario's own MPI-IO, which replaces the MPI's functions of files and takes part
/// in the initialisation, completion and finalisation of others.
Word run_with_own_io(ForwardedCall call) {
  const auto& function = call.function();
  void* const own = own_function(call.id, call.variant);
  if (own != nullptr) call.behind = own;
  if (own != nullptr || function.role == Role::file) return call.run();
  if (function.role == Role::init) {
    request_threads(call);
    const Word result = call.run();
    if (static_cast<int>(result) != 0) return result;
    restore_weak_references();
    mpiio::after_init();
    return result;
  }
  if (call.id == Id::Session_init) restore_weak_references();
  if (communicates(function))
    mpiio::before_communication(function.role == Role::abort || function.role == Role::finalize);
  const Word result = call.run();
  if (function.role != Role::quiet) mpiio::after_communication();
  if (function.role == Role::finalize) mpiio::after_finalize();
  return result;
}

}  // namespace

void* file_function(Id id) {
  return mpiio::is_enabled() ? own_function(id, Variant::profiling) : real(id, Variant::profiling);
}

Word dispatch(Id id, Variant variant, Word* arguments) {
  const base::Unbuffered files;  // several ranks write the files that an MPI opens
  const ForwardedCall call{id, variant, arguments, real(id, variant)};
  return mpiio::is_enabled() ? run_with_own_io(call) : call.run();
}

void after_fork() { stopped = true; }

}  // namespace pario::pmpi
