// Work of a room that takes long, from Python: without the GIL, showing how far it is.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

#include "bindings/bindings.hpp"
#include "records/records.hpp"

namespace pario::bindings {

using Show = std::function<void(std::uint64_t done, std::uint64_t whole)>;

/// Does `work` without the GIL, with `show` called now and then; it, and Ctrl-C, end the work by raising. Raises OSError of an Error.
template <class Work>
auto carry_out(const Show& show, Work work) {
  std::exception_ptr raised;  // no exceptions through rooms
  const records::Show shown = [&](std::uint64_t done, std::uint64_t whole) {
    const nanobind::gil_scoped_acquire acquired;
    try {
      if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
      show(done, whole);
    } catch (...) {
      raised = std::current_exception();
    }
    return !raised;
  };
  auto result = [&] {
    const nanobind::gil_scoped_release released;
    return work(shown);
  }();
  if (raised) std::rethrow_exception(raised);
  if (!result.ok()) raise_os_error(result.error());
  return std::move(*result);
}

}  // namespace pario::bindings
