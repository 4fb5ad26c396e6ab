#include "observe/preload/system_calls.hpp"

#include <sys/syscall.h>

#include <cerrno>

#include "core/base/base.hpp"
#include "observe/preload/calls.hpp"

namespace pario::preload {

constinit thread_local int NestedCalls::depth_ __attribute__((tls_model("initial-exec"))) = 0;

long system_calls::make_system_call(long number, const Words& w) {
  const long result = base::call_kernel(number, w[0], w[1], w[2], w[3], w[4], w[5]);
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace pario::preload

using namespace pario::preload;

namespace {

/// True once the real syscall() is known: the lookup may allocate, and a malloc may make its system
/// calls by this function.
bool is_real_known() {
  constexpr auto kId = id_of(Symbol::syscall);
  return pario::chain::detail::entries[kId].load(std::memory_order_relaxed) != nullptr;
}

}  // namespace

// Arguments that the caller has not passed are read as well, as in the C library.
PARIO_WRAP(long, syscall, long number, long a, long b, long c, long d, long e, long f) {
  switch (number) {
    case SYS_io_uring_setup:
    case SYS_io_uring_enter:
    case SYS_io_uring_register:
      return system_calls::trace_ring(number, {a, b, c, d, e, f});
    case SYS_io_setup:
    case SYS_io_destroy:
    case SYS_io_submit:
    case SYS_io_cancel:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
      return system_calls::trace_libaio(number, {a, b, c, d, e, f});
    case SYS_getdents64:
      return trace_on_descriptor(Symbol::getdents64, static_cast<int>(a), [&] {
        return system_calls::make_system_call(number, {a, b, c, d, e, f});
      });
    default:
      break;
  }
  if (is_real_known()) [[likely]]
    return PARIO_REAL(syscall)(number, a, b, c, d, e, f);
  return system_calls::make_system_call(number, {a, b, c, d, e, f});
}
