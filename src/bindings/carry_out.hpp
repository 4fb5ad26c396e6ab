// Runs long work of a module for Python, without the GIL and with progress.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>

#include "bindings/bindings.hpp"
#include "bindings/python_calls.hpp"
#include "data/records/records.hpp"

namespace pario::bindings {

/// Called with the bytes done and the total.
using Show = nanobind::callable;

/// Does `work` without the GIL; calls `show` (may be None) at intervals. An exception of a callback
/// and Ctrl-C end the work and are raised. Raises OSError for an Error.
template <class Work>
auto carry_out(nanobind::handle show, Work work) {
  const records::Show shown = [&](std::uint64_t done, std::uint64_t whole) {
    if (raised) return false;
    return with_python([&] {
             if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
             if (show) call(show, done, whole);
           })
        .ok();
  };
  auto result = without_gil([&] { return work(shown); });
  if (!result.ok()) raise_os_error(result.error());
  return std::move(*result);
}

}  // namespace pario::bindings
