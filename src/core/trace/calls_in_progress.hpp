// The calls that each thread is in: shown in the log, kept apart from the tracer's own calls, and
// summed for libraries above files. Contracts as in trace.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/base/base.hpp"
#include "core/trace/rows.hpp"

namespace pario::trace {

/// The calls on files, and of MPI, inside a call of a library.
struct InnerCalls {
  std::uint64_t ticks, reads, bytes_read, writes, bytes_written;
};

class LibraryCall;

namespace detail {
struct Slot;
/// The position of this thread; plain bytes, so that it needs no construction.
struct Context {
  // Depths; words, because reading stored bytes as part of a word stalls.
  std::uint32_t call, mpi, mpiio, tracer;
  Slot* slot;                           // the thread's block in the log; null before the first call
  CallRow* calls;                       // its calls in progress, in that block
  std::uint32_t nested;                 // number of calls in progress, at most kNestedCalls
  std::uintptr_t frames[kNestedCalls];  // stack addresses of these calls
  const LibraryCall* library;           // of a library above files; null: outside of such calls
  InnerCalls inner;                     // inside the outermost of them
};
extern constinit thread_local Context context __attribute__((tls_model("initial-exec")));
/// True if this thread is inside the tracer, where a signal handler has interrupted it: it may hold
/// locks.
inline bool inside_tracer() { return (context.call | context.tracer) != 0; }
void lose_call();
extern constinit std::atomic<int> first_calls;  ///< of this image that are still to come
std::uint64_t thread_time();                    ///< processor time of this thread in ns
void leave_out_first_call(std::uint64_t begin);
/// Gives the thread its block. False if it cannot have one.
bool prepare_thread();
/// Removes the calls that were left without a return (longjmp), seen from a call at `frame`.
/// Returns the number of the others.
std::uint32_t drop_abandoned_calls(std::uintptr_t frame);
}  // namespace detail

/// True if this thread is inside an MPI call.
inline bool inside_mpi() { return (detail::context.mpi | detail::context.mpiio) != 0; }

/// The facts of a call that are known before it is made; see CallRow.
struct CallStart {
  FunctionId function = 0;
  std::uint32_t file = kNoFile;
  std::uint64_t offset = kUnknownOffset, length = 0;
  std::uint8_t flags = 0;
  std::string_view path = {};
};

/// Shows a call in the log from its construction to end(), so that a reader sees where a process is
/// that hangs, runs or was killed. A local variable of the function that makes the call. Costs a
/// few stores. A call in a signal handler on another stack may hide the interrupted one until it
/// returns.
///
/// It has no destructor, because the forced unwinding of a cancelled thread must not find clean-ups
/// in this library: they would use the library's own libgcc, which aborts then. A call that is left
/// without end() is dropped later, as after longjmp.
class ShownCall {
 public:
  /// `start`: ticks.
  ShownCall(const CallStart& call, std::uint64_t start) {
    auto& context = detail::context;
    if (context.calls == nullptr && !detail::prepare_thread()) [[unlikely]]
      return;
    rows_ = context.calls;
    index_ = enter(context);
    // A signal handler may begin a call from here on: its row is the next one.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    fill(rows_[index_], call, start);
  }
  /// Removes the call from the log, after its return.
  void end() const {
    auto& context = detail::context;
    if (rows_ == nullptr || rows_ != context.calls) [[unlikely]]
      return;  // the child of a fork, or the end of the thread
    std::atomic_ref(rows_[index_].start).store(0, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    context.nested = index_;
  }
  ShownCall(const ShownCall&) = delete;
  ShownCall& operator=(const ShownCall&) = delete;

 private:
  std::uint32_t enter(detail::Context& context) const {
    const auto frame = reinterpret_cast<std::uintptr_t>(this);
    std::uint32_t nested = context.nested;
    if (nested != 0 && context.frames[nested - 1] <= frame) [[unlikely]]
      nested = detail::drop_abandoned_calls(frame);
    if (nested == kNestedCalls) --nested;
    context.nested = nested + 1;
    context.frames[nested] = frame;
    return nested;
  }
  static void fill(CallRow& row, const CallStart& call, std::uint64_t start) {
    row.offset = call.offset;
    row.length = call.length;
    row.file = call.file;
    row.function = call.function;
    row.flags = call.flags;
    if (!call.path.empty()) store_path(row, call.path);
    std::atomic_ref(row.start).store(start, std::memory_order_release);
  }
  /// Copies a short text. The compiler makes memcpy "rep movs" here, which is slower.
  static void copy_words(char* to, std::string_view text) {
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    const std::size_t size = text.size();
    const char* const from = text.data();
    if (size < kWord) {
      for (std::size_t at = 0; at < size; ++at) to[at] = from[at];
      return;
    }
    for (std::size_t at = 0; at < size - kWord; at += kWord) std::memcpy(to + at, from + at, kWord);
    std::memcpy(to + size - kWord, from + size - kWord, kWord);
  }
  static void store_path(CallRow& row, std::string_view path) {
    const std::string_view shown = path.substr(0, sizeof row.path - 1);
    copy_words(row.path, shown);
    row.path[shown.size()] = '\0';
    row.flags |= kNamed;
  }

  CallRow* rows_ = nullptr;
  std::uint32_t index_ = 0;
};

/// A ShownCall that ends with its scope, for calls that are no cancellation points.
class InProgress : public ShownCall {
 public:
  using ShownCall::ShownCall;
  ~InProgress() { end(); }
};

/// Marks this thread as inside the tracer (kind `call`), or inside an MPI call. `outermost()` is
/// false if the thread was inside already: the call must then be passed through uncounted; with
/// kind `call` process.lost counts it. No guard of kind `call` surrounds the real function: a
/// signal handler may interrupt it and make calls of its own. Kind `mpi` nests around `call`: POSIX
/// calls of an MPI library are counted, with the flags kInMpi and kInMpiIo.
class Guard {
 public:
  enum class Kind : std::uint8_t { call, mpi, mpiio };
  explicit Guard(Kind kind = Kind::call) : kind_(kind) {
    auto& context = detail::context;
    outermost_ = !detail::inside_tracer() &&
                 (kind == Kind::call || (context.mpi == 0 && context.mpiio == 0));
    ++depth(context);
    if (!outermost_ && (kind == Kind::call || context.tracer != 0)) [[unlikely]]
      detail::lose_call();
  }
  ~Guard() { --depth(detail::context); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  bool outermost() const { return outermost_; }

 private:
  std::uint32_t& depth(detail::Context& context) const {
    return kind_ == Kind::call ? context.call : kind_ == Kind::mpi ? context.mpi : context.mpiio;
  }

  Kind kind_;
  bool outermost_;
};

/// Leaves the tracer's work on the first calls of an image out of the processor time of the
/// program: each new page of its tables costs a fault, which together is more than the work of a
/// short program. A local variable of that work; later ones cost a load and two branches.
class FirstCall {
 public:
  FirstCall() {
    if (detail::first_calls.load(std::memory_order_relaxed) > 0) [[unlikely]]
      begin_ = detail::thread_time();
  }
  ~FirstCall() {
    if (begin_ != 0) [[unlikely]]
      detail::leave_out_first_call(begin_);
  }
  FirstCall(const FirstCall&) = delete;
  FirstCall& operator=(const FirstCall&) = delete;

 private:
  std::uint64_t begin_ = 0;
};

/// Marks this thread as inside a call of a library above files (HDF5), and sums the calls on files
/// and of MPI that it makes, until end(). A call of the library inside another one is passed on
/// uncounted. A local variable of the function that makes the call.
///
/// It has no destructor, as ShownCall: an exception of the library (ADIOS2) must not find clean-ups
/// in this one. A call that was left without end() is known by the stack: it has no older frame, or
/// its frame is overwritten.
class LibraryCall {
 public:
  LibraryCall() : outermost_(!is_inside()) {
    if (!outermost_) return;
    auto& context = detail::context;
    context.library = this;
    context.inner = {};
    mark_ = mark_of(this);
  }
  void end() {
    if (!outermost_) return;
    mark_ = 0;
    detail::context.library = nullptr;
  }
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;
  bool outermost() const { return outermost_; }
  /// Returns the calls so far.
  const InnerCalls& inner() const { return detail::context.inner; }

 private:
  static constexpr std::uintptr_t kLargestStack = 1 << 20;  // of the frames inside a call
  static std::uintptr_t mark_of(const LibraryCall* call) {
    return reinterpret_cast<std::uintptr_t>(call) ^ 0x9e3779b97f4a7c15;
  }
  /// True if a call of this thread surrounds this one.
  bool is_inside() const {
    const LibraryCall* outer = detail::context.library;
    const auto frame = reinterpret_cast<std::uintptr_t>(this);
    return reinterpret_cast<std::uintptr_t>(outer) > frame &&
           reinterpret_cast<std::uintptr_t>(outer) - frame < kLargestStack &&
           outer->mark_ == mark_of(outer);
  }

  std::uintptr_t mark_ = 0;
  bool outermost_;
};

}  // namespace pario::trace
