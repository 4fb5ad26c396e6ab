// Work without the GIL that calls back into Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cerrno>
#include <exception>
#include <utility>

#include "bindings/gil.hpp"
#include "core/base/base.hpp"

namespace pario::bindings {

/// The first exception of Python during work of this thread that released the GIL; of the innermost
/// one, where a callback begins such work itself.
inline thread_local std::exception_ptr raised;

/// Calls back into Python; an exception becomes `raised`, and an Error.
template <class WithPython>
base::Status with_python(WithPython work) {
  const std::exception_ptr exception = catch_exception(work);
  if (!exception) return {};
  if (!raised) raised = exception;
  return base::Error{
      .number = EINTR, .operation = "call of Python", .detail = "it raised an exception"};
}

/// Runs Python's signal handlers. An Error if one of them raises an exception, which becomes
/// `raised`, or if a callback of this work has raised one that no wait has noticed.
inline base::Status run_signal_handlers() {
  static_cast<void>(with_python([] {
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }));
  if (!raised) return {};
  return base::Error{.number = EINTR, .operation = "wait for other ranks", .detail = "interrupted"};
}

/// Runs `work` without the GIL. Returns its result, and the exception of its callbacks or null.
template <class Work>
auto release_gil_for(Work work) {
  std::exception_ptr outer = std::exchange(raised, nullptr);
  auto result = [&] {
    const Released released;
    return work();
  }();
  return std::pair{std::move(result), std::exchange(raised, std::move(outer))};
}

/// Runs `work` without the GIL, then raises the exception of its callbacks.
template <class Work>
auto without_gil(Work work) {
  auto [result, exception] = release_gil_for(work);
  if (exception) std::rethrow_exception(exception);
  return std::move(result);
}

}  // namespace pario::bindings
