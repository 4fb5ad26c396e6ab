// Wrappers of POSIX asynchronous I/O. A request is counted on its file when the program collects
// the result, with the offset of the request and without time, because it ran beside the program.
// The time of the program is that of the calls that submit and wait; they are counted by function.
#include <aio.h>

#include "observe/preload/calls.hpp"

using namespace pario::preload;
namespace trace = pario::trace;

namespace {

void count_request(Symbol symbol, const aiocb& request, ssize_t moved) {
  Description* file = descriptors::find_known(request.aio_fildes);
  if (file == nullptr) return;
  const bool writes = request.aio_lio_opcode == LIO_WRITE;
  const std::uint64_t now = trace::ticks();
  const void* data = writes ? const_cast<const void*>(request.aio_buf) : nullptr;
  count_transfer({writes ? Symbol::aio_return_write : symbol, request.aio_fildes,
                  request.aio_nbytes, static_cast<std::uint64_t>(request.aio_offset), data},
                 *file, {now, now}, moved);
}

bool moves_data(const aiocb& request) {
  return request.aio_lio_opcode == LIO_READ || request.aio_lio_opcode == LIO_WRITE;
}

}  // namespace

#define SUBMIT(name)                                                             \
  PARIO_WRAP(int, name, aiocb* request) {                                        \
    return trace_alone(Symbol::name, [&] { return PARIO_REAL(name)(request); }); \
  }
SUBMIT(aio_read)
SUBMIT(aio_read64)
SUBMIT(aio_write)
SUBMIT(aio_write64)

#define FSYNC(name)                                                                         \
  PARIO_WRAP(int, name, int operation, aiocb* request) {                                    \
    return trace_alone(Symbol::name, [&] { return PARIO_REAL(name)(operation, request); }); \
  }
FSYNC(aio_fsync)
FSYNC(aio_fsync64)

#define LISTIO(name)                                                                    \
  PARIO_WRAP(int, name, int mode, aiocb* const* requests, int count, sigevent* event) { \
    return trace_alone(Symbol::name,                                                    \
                       [&] { return PARIO_REAL(name)(mode, requests, count, event); }); \
  }
LISTIO(lio_listio)
LISTIO(lio_listio64)

#define SUSPEND(name)                                                                             \
  PARIO_WRAP(int, name, const aiocb* const* requests, int count, const timespec* timeout) {       \
    return trace_alone(Symbol::name, [&] { return PARIO_REAL(name)(requests, count, timeout); }); \
  }
SUSPEND(aio_suspend)
SUSPEND(aio_suspend64)

#define RETURN(name)                                                    \
  PARIO_WRAP(ssize_t, name, aiocb* request) {                           \
    const ssize_t moved = PARIO_REAL(name)(request);                    \
    if (active() && moves_data(*request))                               \
      in_tracer([&] { count_request(Symbol::name, *request, moved); }); \
    return moved;                                                       \
  }
RETURN(aio_return)
RETURN(aio_return64)
