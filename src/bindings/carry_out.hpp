// Runs long work of a module for Python, without the GIL and with progress.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <exception>
#include <utility>

#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"
#include "data/records/records.hpp"

namespace pario::bindings {

/// Called with the bytes done and the total.
using Show = nanobind::callable;

/// Does `work` without the GIL; calls `show` (may be None) at intervals. An exception of `show` and
/// Ctrl-C end the work and are raised. Raises OSError for an Error.
template <class Work>
auto carry_out(nanobind::handle show, Work work) {
  std::exception_ptr raised;
  const records::Show shown = [&](std::uint64_t done, std::uint64_t whole) {
    if (raised) return false;
    raised = catch_exception([&] {
      if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
      if (show) call(show, done, whole);
    });
    return !raised;
  };
  auto result = [&] {
    const Released released;
    return work(shown);
  }();
  if (raised) std::rethrow_exception(raised);
  if (!result.ok()) raise_os_error(result.error());
  return std::move(*result);
}

}  // namespace pario::bindings
