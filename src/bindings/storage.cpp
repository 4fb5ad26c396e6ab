// Files that pario's MPI-IO has written.
#include <nanobind/stl/string.h>

#include <cerrno>
#include <cstdint>
#include <exception>
#include <string>

#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"
#include "core/file/file.hpp"
#include "core/file/publication.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

/// Joins subfiles. Raises OSError; an exception of `show` is raised once the file is complete.
void join(const nb::bytes& path, const nb::callable& show) {
  const std::string name = text_of(path);
  std::exception_ptr raised;
  const auto progress = [&](std::uint64_t done, std::uint64_t whole) {
    if (!raised) raised = catch_exception([&] { call(show, done, whole); });
  };
  base::Status status;
  {
    const Released released;
    status = file::join(name, progress, file::Joining::if_complete);
  }
  if (raised) std::rethrow_exception(raised);
  if (!status) raise_os_error(status.error());
}

/// The path of a new locked part, and its descriptor. Raises OSError that names the target.
nb::tuple hand_over(base::Result<file::Publication> made, const std::string& target) {
  if (!made.ok()) {
    errno = made.error().number;
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, target.c_str());
    throw nb::python_error();
  }
  const nb::bytes part = to_bytes(made->part());
  return nb::make_tuple(part, made->release());
}

nb::tuple create_part(const nb::bytes& target) {
  const std::string path = text_of(target);
  return hand_over(
      [&] {
        const Released released;
        return file::Publication::of_file(path);
      }(),
      path);
}

nb::tuple create_directory_part(const nb::bytes& target, mode_t mode, bool temporary) {
  const std::string path = text_of(target);
  return hand_over(
      [&] {
        const Released released;
        return file::Publication::of_directory(
            path, {.mode = mode, .exclusive = false, .temporary = temporary});
      }(),
      path);
}

nb::bytes part_path(const nb::bytes& target) {
  return to_bytes(file::part_path(text_of(target), file::part_number(0)));
}

/// Removes the first temporary file of a target if no process has locked it.
bool remove_stale_part(const nb::bytes& target) {
  const std::string path = text_of(target);
  return file::remove_stale_part(file::part_path(path, file::part_number(0)));
}

}  // namespace

std::string printable(std::string_view text) {
  const auto decoded = nb::steal<nb::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
  if (!decoded.is_valid()) throw nb::python_error();
  return decoded.c_str();
}

void raise_os_error(int number, std::string_view text) {
  PyErr_SetObject(PyExc_OSError, nb::make_tuple(number, printable(text)).ptr());
  throw nb::python_error();
}

void raise_os_error(const base::Error& error) { raise_os_error(error.number, error.text()); }

void add_storage(nb::module_& module) {
  module.def("join", join, "path"_a, "show"_a);
  module.def("create_part", create_part, "target"_a);
  module.def("create_directory_part", create_directory_part, "target"_a, "mode"_a, "temporary"_a);
  module.def("part_path", part_path, "target"_a);
  module.def("remove_stale_part", remove_stale_part, "target"_a);
}

}  // namespace pario::bindings
