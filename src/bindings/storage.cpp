// Files as pario's MPI-IO writes them.
#include <nanobind/stl/string.h>

#include <cstdint>
#include <exception>
#include <string>

#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"
#include "storage/storage.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

/// Raises OSError. What `show` raises is raised when the file is whole.
void join(const nb::bytes& path, const nb::callable& show) {
  const std::string name(path.c_str(), path.size());
  std::exception_ptr raised;
  const auto progress = [&](std::uint64_t done, std::uint64_t whole) {
    if (!raised) raised = raised_by([&] { call(show, done, whole); });
  };
  base::Status status;
  {
    const Released released;
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
