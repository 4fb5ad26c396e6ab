// Work of a room that takes long, from Python: without the GIL, showing how far it is.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <exception>
#include <utility>

#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"
#include "records/records.hpp"

namespace pario::bindings {

/// Called with bytes that are done, and all.
using Show = nanobind::callable;

/// Does `work` without the GIL, with `show` called now and then, if there is one; it, and Ctrl-C, end the work by raising. Raises OSError
/// of an Error.
template <class Work>
auto carry_out(nanobind::handle show, Work work) {
  std::exception_ptr raised;
  const records::Show shown = [&](std::uint64_t done, std::uint64_t whole) {
    if (raised) return false;
    raised = raised_by([&] {
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
