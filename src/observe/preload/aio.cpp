// Wrappers of POSIX asynchronous I/O. A request is counted when the program collects its result
// (requests.hpp); the calls that submit and await requests are counted on the files of these.
#include <aio.h>

#include "observe/preload/requests.hpp"

using namespace pario::preload;
namespace trace = pario::trace;

namespace {

constexpr std::uint32_t kMost = 1 << 12;  // requests in flight that have a latency

/// The requests in flight of this process.
struct InFlight {
  std::uint64_t lock = 0;
  bool begun = false;
  RequestTable requests;
};
InFlight in_flight;

/// Returns the direction of a request; Symbol::count: it moves no data.
Symbol direction_of(const aiocb& request) {
  switch (request.aio_lio_opcode) {
    case LIO_READ:
      return Symbol::aio_return;
    case LIO_WRITE:
      return Symbol::aio_return_write;
    default:
      return Symbol::count;
  }
}

/// Returns a request in the form of the table; without record: not traced. Its bytes are not
/// examined, because the program may free them before it collects the result.
Request request_of(const aiocb& request, Symbol symbol, std::uint64_t now) {
  Description* file =
      symbol == Symbol::count ? nullptr : descriptors::find_inside(request.aio_fildes);
  if (file == nullptr) return {};
  return {.data = reinterpret_cast<std::uint64_t>(&request),
          .record = record_of(*file, trace::Layer::posix),
          .offset = static_cast<std::uint64_t>(request.aio_offset),
          .asked = request.aio_nbytes,
          .start = now,
          .symbol = symbol,
          .open_flags = static_cast<std::uint32_t>(file->open_flags.load())};
}

void add_request(const Request& request) {
  if (request.record == nullptr) return;
  const pario::base::SpinLock lock(in_flight.lock);
  if (!in_flight.begun) in_flight.requests.begin(kMost);
  in_flight.begun = true;
  begin_request(in_flight.requests, request);
}

bool take_request(const aiocb& request, Request& out) {
  const pario::base::SpinLock lock(in_flight.lock);
  return in_flight.requests.take(reinterpret_cast<std::uint64_t>(&request), out);
}

/// The calls of a program on `count` requests, of which some may be null.
using Requests = const aiocb* const*;

template <class Action>
void for_each(Requests requests, int count, Action action) {
  for (int i = 0; i < count; ++i)
    if (requests[i] != nullptr) action(*requests[i]);
}

/// Counts a call on the files of its requests.
void count_on_files(Symbol symbol, Requests requests, int count, Span span, bool failed) {
  RequestFiles files;
  for_each(requests, count, [&](const aiocb& request) {
    Description* file = descriptors::find_inside(request.aio_fildes);
    if (file != nullptr) files.add(record_of(*file, trace::Layer::posix));
  });
  files.count(symbol, span, failed);
}

void withdraw(const aiocb& request) {
  Request known;
  if (take_request(request, known)) trace::withdraw_request(known.record);
}

/// Traces a call that submits requests; `direction` returns the symbol of one of them.
template <class Direction, class Real>
int trace_submission(Symbol symbol, Requests requests, int count, Direction direction, Real real) {
  if (!active()) return real();
  const std::uint64_t start = trace::ticks();
  in_tracer([&] {
    for_each(requests, count, [&](const aiocb& request) {
      add_request(request_of(request, direction(request), start));
    });
  });
  return count_call(start_alone(symbol), real, [&](Span span, int result) {
    // A list that fails may have submitted some of its requests: those stay.
    if (result != 0 && count == 1) withdraw(*requests[0]);
    count_on_files(symbol, requests, count, span, result != 0);
  });
}

template <class Real>
int trace_single(Symbol symbol, const aiocb* request, Symbol direction, Real real) {
  return trace_submission(symbol, &request, 1, [&](const aiocb&) { return direction; }, real);
}

template <class Real>
int trace_wait(Symbol symbol, Requests requests, int count, Real real) {
  if (!active()) return real();
  return count_call(start_alone(symbol), real, [&](Span span, int result) {
    count_on_files(symbol, requests, count, span, result != 0);
  });
}

/// Counts the completion of a request; one that the table did not hold has no latency.
void count_result(const aiocb& request, ssize_t moved) {
  Request known;
  const std::uint64_t now = trace::ticks();
  const bool was_in_flight = take_request(request, known);
  if (!was_in_flight) known = request_of(request, direction_of(request), now);
  if (known.record == nullptr) return;
  if (!was_in_flight) trace::begin_request(known.record);
  count_completion(known, moved, now);
}

}  // namespace

namespace pario::preload {

void posix_aio::forget_all() {
  in_flight.lock = 0;
  if (in_flight.begun) in_flight.requests.begin(kMost);
}

}  // namespace pario::preload

#define SUBMIT(name, direction)                                     \
  PARIO_WRAP(int, name, aiocb* request) {                           \
    return trace_single(Symbol::name, request, Symbol::direction,   \
                        [&] { return PARIO_REAL(name)(request); }); \
  }
SUBMIT(aio_read, aio_return)
SUBMIT(aio_read64, aio_return)
SUBMIT(aio_write, aio_return_write)
SUBMIT(aio_write64, aio_return_write)

#define FSYNC(name)                                                                         \
  PARIO_WRAP(int, name, int operation, aiocb* request) {                                    \
    return trace_alone(Symbol::name, [&] { return PARIO_REAL(name)(operation, request); }); \
  }
FSYNC(aio_fsync)
FSYNC(aio_fsync64)

#define LISTIO(name)                                                                         \
  PARIO_WRAP(int, name, int mode, aiocb* const* requests, int count, sigevent* event) {      \
    return trace_submission(Symbol::name, requests, count, direction_of,                     \
                            [&] { return PARIO_REAL(name)(mode, requests, count, event); }); \
  }
LISTIO(lio_listio)
LISTIO(lio_listio64)

#define SUSPEND(name)                                                                       \
  PARIO_WRAP(int, name, const aiocb* const* requests, int count, const timespec* timeout) { \
    return trace_wait(Symbol::name, requests, count,                                        \
                      [&] { return PARIO_REAL(name)(requests, count, timeout); });          \
  }
SUSPEND(aio_suspend)
SUSPEND(aio_suspend64)

#define RETURN(name)                                                 \
  PARIO_WRAP(ssize_t, name, aiocb* request) {                        \
    const ssize_t moved = PARIO_REAL(name)(request);                 \
    if (active()) in_tracer([&] { count_result(*request, moved); }); \
    return moved;                                                    \
  }
RETURN(aio_return)
RETURN(aio_return64)
