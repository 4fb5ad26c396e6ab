// Files as pario's MPI-IO writes them.
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "bindings/bindings.hpp"
#include "storage/storage.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

using Show = std::function<void(std::uint64_t done, std::uint64_t whole)>;

/// Raises OSError. What `show` raises is raised when the file is whole.
void join(const nb::bytes& path, const Show& show) {
  const std::string name(path.c_str(), path.size());
  std::exception_ptr raised;  // no exceptions through rooms
  const auto progress = [&](std::uint64_t done, std::uint64_t whole) {
    const nb::gil_scoped_acquire acquired;
    try {
      if (!raised) show(done, whole);
    } catch (...) {
      raised = std::current_exception();
    }
  };
  base::Status status;
  {
    const nb::gil_scoped_release released;
    status = storage::join(name, progress);
  }
  if (raised) std::rethrow_exception(raised);
  if (!status) raise_os_error(status.error());
}

}  // namespace

void raise_os_error(const base::Error& error) {
  const std::string text = error.text();
  PyErr_SetObject(PyExc_OSError, nb::make_tuple(error.number, text.c_str()).ptr());
  throw nb::python_error();
}

void add_storage(nb::module_& module) { module.def("join", join, "path"_a, "show"_a); }

}  // namespace pario::bindings
