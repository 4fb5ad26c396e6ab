// System calls that programs make by syscall(): those that are traced.
#pragma once

#include <array>

namespace pario::preload {

/// Marks the thread as inside a wrapped call that may make other wrapped calls, as those of
/// liburing and libaio do: only the outermost is counted.
class NestedCalls {
 public:
  NestedCalls() { ++depth_; }
  ~NestedCalls() { --depth_; }
  NestedCalls(const NestedCalls&) = delete;
  NestedCalls& operator=(const NestedCalls&) = delete;
  bool outermost() const { return depth_ == 1; }

 private:
  static constinit thread_local int depth_ __attribute__((tls_model("initial-exec")));
};

namespace system_calls {

/// The arguments of a system call.
using Words = std::array<long, 6>;

/// Makes a system call as syscall() does: -1 and errno on failure.
long make_system_call(long number, const Words& words);

// The functions below make the call, and count it if the process is traced.
long trace_libaio(long number, const Words& words);
long trace_ring(long number, const Words& words);

}  // namespace system_calls

}  // namespace pario::preload
