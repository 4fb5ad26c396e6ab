// The functions that communicate: runs a call and records it in the log.
#include "observe/pmpi/bytes.hpp"
#include "observe/pmpi/communicators.hpp"
#include "observe/pmpi/invocation.hpp"
#include "observe/pmpi/lifetime.hpp"

namespace pario::pmpi {
namespace {

constexpr std::uint32_t kAnyTag = ~std::uint32_t{0};

bool is_collective(Role role) {
  switch (role) {
    case Role::all:
    case Role::begin:
    case Role::free_comm:
    case Role::make_win:
    case Role::all_win:
    case Role::free_win:
    case Role::finalize:
      return true;
    default:
      return false;
  }
}

/// Finds the communicator that a call is about to free; its handle is valid only before the call.
std::shared_ptr<Communicator> find_ending(const Invocation& call) {
  const auto index = call.function.comm;
  switch (call.function.role) {
    case Role::free_comm:
      return known_communicator(call.mpi.handle_at(call[index]));
    case Role::free_win:
      return window(call.mpi.handle_at(call[index]));
    default:
      return nullptr;
  }
}

void forget(const Invocation& call, Word handle) {
  if (call.function.role == Role::free_comm) forget_communicator(handle);
  if (call.function.role == Role::free_win) forget_window(handle);
}

/// Returns the communicator of a call, by `find` from its handle, or from its window; null: none.
template <class Find>
auto find_own(const Invocation& call, Find find) -> decltype(find(Word())) {
  if (call.function.comm < 0) return nullptr;
  switch (call.function.role) {
    case Role::local:
    case Role::all:
    case Role::begin:
    case Role::make_win:
      return find(call.mpi.handle(call[call.function.comm]));
    case Role::local_win:
    case Role::all_win:
      // The entry of the window owns it.
      return window(call.mpi.handle(call[call.function.comm])).get();
    default:
      return nullptr;
  }
}

/// Returns the communicator of a call that has succeeded; null: none. (Before the call, its handle
/// may be invalid, and a query would be fatal.)
Communicator* communicator_of(const Invocation& call) {
  return find_own(call, [&](Word handle) { return &communicator(call.mpi, handle); });
}

/// Returns the known communicator of a call that is about to be made; null: none. Its handle may be
/// invalid.
const Communicator* known_before(const Invocation& call) {
  const Communicator* own = find_own(call, find_communicator);
  return own != nullptr ? own : find_ending(call).get();
}

std::uint64_t join_peer_and_tag(const Communicator& comm, int peer, int tag) {
  const auto world = comm.world_rank(peer);
  if (!world) return trace::kUnknownOffset;
  return static_cast<std::uint64_t>(*world) << 32 |
         (tag < 0 ? kAnyTag : static_cast<std::uint32_t>(tag));
}

/// Returns the world rank of the peer << 32 | tag, if the arguments and the status identify the
/// peer. `done`: the call has set its status.
std::uint64_t peer_and_tag(const Invocation& call, const Communicator& comm, bool done) {
  const Shape& shape = call.function.shape;
  if (shape.peer < 0) return trace::kUnknownOffset;
  int peer = call.integer(shape.peer), tag = shape.tag < 0 ? 0 : call.integer(shape.tag);
  if (done && shape.status >= 0) call.mpi.envelope(call[shape.status], peer, tag);
  return join_peer_and_tag(comm, peer, tag);
}

/// Sets the facts that the log shows during the call.
void show(Invocation& call, const Communicator* comm) {
  if (!comm) return;
  call.shown.file = comm->number;
  if (is_collective(call.function.role)) {
    call.shown.flags = trace::kCollective;
    call.shown.offset = comm->calls.load(std::memory_order_relaxed);
  } else {
    call.shown.offset = peer_and_tag(call, *comm, false);
  }
}

void record(const Invocation& call, Communicator* comm, std::uint64_t bytes) {
  trace::Call entry{.function = call.number_in_log(),
                    .op = trace::Op::other,
                    .start = call.start,
                    .end = call.end};
  entry.result = call.has_succeeded() ? static_cast<std::int64_t>(bytes) : -1;
  if (comm && is_collective(call.function.role)) {
    entry.flags = trace::kCollective;
    entry.offset = comm->calls.fetch_add(1, std::memory_order_relaxed);
  } else if (comm) {
    entry.offset = peer_and_tag(call, *comm, true);
  }
  trace::count_call(entry, comm ? comm->number : trace::kNoFile, bytes);
}

/// Gives the communicator of a successful call its common id. The time belongs to the call, because
/// other ranks may wait.
void finish_collective(Invocation& call, Communicator& comm) {
  if (comm.id != 0 || comm.inter) return;
  agree_on_id(call.mpi, comm);
  call.end = trace::ticks();
}

Word communicate_on(Invocation& call) {
  const auto ended = find_ending(call);
  const Word ended_handle = ended ? call.mpi.handle_at(call[call.function.comm]) : 0;
  show(call, known_before(call));
  call.run();
  if (!call.has_succeeded()) {
    record(call, nullptr, 0);
    return call.result;
  }
  Communicator* comm = ended ? ended.get() : communicator_of(call);
  const Role role = call.function.role;
  if (comm && (role == Role::all || role == Role::make_win)) finish_collective(call, *comm);
  if (role == Role::make_win)
    add_window(call.mpi.handle_at(call[call.function.args - 1]),
               call.mpi.handle(call[call.function.comm]));
  if (ended) forget(call, ended_handle);
  record(call, comm, bytes_of(call, comm));
  return call.result;
}

}  // namespace

Word communicate(Invocation& call) {
  switch (call.function.role) {
    case Role::init: {
      const trace::InProgress in_progress(call.shown, trace::ticks());  // with after_init()
      call.run();
      record(call, nullptr, 0);
      if (call.has_succeeded()) after_init(call);
      return call.result;
    }
    case Role::finalize: {
      const std::uint64_t start = trace::ticks();
      show(call, known_communicator(call.mpi.comm_world).get());
      const trace::InProgress in_progress(call.shown, start);  // with before_finalize()
      before_finalize(call.mpi, start);
      call.run();
      call.start = start;
      record(call, known_communicator(call.mpi.comm_world).get(), 0);
      return call.result;
    }
    case Role::abort: {
      trace::finish(kEndedByAbort, call.integer(1));
      call.run();
      return call.result;
    }
    default:
      return communicate_on(call);
  }
}

}  // namespace pario::pmpi
