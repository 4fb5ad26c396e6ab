// Files that ranks of a Comm write and read together: the engine of pario's MPI-IO.
#include "bindings/shared_file.hpp"

#include <fcntl.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/python_calls.hpp"
#include "parallel/engine/engine.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

using Sizes = std::vector<std::uint64_t>;
/// The members of engine::Box in their order, the memory as an address.
using BoxTuple = std::tuple<std::uint64_t, std::uint64_t, Sizes, Sizes, Sizes, std::uintptr_t,
                            std::vector<std::int64_t>>;

constexpr double kLongestPatience = 1e9;  // seconds

std::vector<engine::Box> boxes_of(const std::vector<BoxTuple>& tuples) {
  std::vector<engine::Box> boxes;
  for (const auto& [place, element, whole, begin, shape, address, strides] : tuples)
    boxes.push_back(
        {place, element, whole, begin, shape, reinterpret_cast<std::byte*>(address), strides});
  return boxes;
}

[[noreturn]] void raise_error(const base::Error& error) {
  std::string text = error.detail.empty() ? std::strerror(error.number) : error.detail;
  if (error.rank >= 0) text = "rank " + std::to_string(error.rank) + ": " + text;
  raise_os_error(error.number, text);
}

/// As without_gil(), for calls that end alike on all ranks: an exception of Python during a call
/// that has succeeded is dropped, an interrupt is raised after it.
template <class Work>
auto call_without_gil(Work work) {
  auto [result, exception] = release_gil_for(work);
  if (!exception) return std::move(result);
  const bool succeeded = [&] {
    if constexpr (requires { result.ok(); })
      return result.ok();
    else
      return static_cast<bool>(result);
  }();
  if (!succeeded) std::rethrow_exception(exception);
  try {
    std::rethrow_exception(exception);
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
  }
  return std::move(result);
}

class SharedFile {
 public:
  SharedFile(std::shared_ptr<comm::Comm> comm, std::unique_ptr<engine::SharedFile> file)
      : comm_(std::move(comm)), file_(std::move(file)) {}

  std::uint64_t write(const std::vector<BoxTuple>& tuples) {
    const std::vector<engine::Box> boxes = boxes_of(tuples);
    return call([&] { return file_->write_boxes(boxes); });
  }
  std::uint64_t read(const std::vector<BoxTuple>& tuples) {
    const std::vector<engine::Box> boxes = boxes_of(tuples);
    return call([&] { return file_->read_boxes(boxes); });
  }
  std::uint64_t maximum(std::uint64_t mine) {
    return call([&]() -> base::Result<std::uint64_t> {
      Sizes all(static_cast<std::size_t>(comm_->size()));
      const comm::WaitLimits limits{.give_up = file_->hints().pario_patience,
                                    .interrupt = run_signal_handlers};
      comm::Watchdog watch(*comm_, limits, {file_->path(), "maximum", nullptr});
      if (base::Status status = comm_->allgather(&mine, sizeof mine, all.data(), watch.patience());
          !status)
        return status.error();
      return std::ranges::max(all);
    });
  }
  void close() {
    const base::Status status = call_without_gil([&] { return file_->close(); });
    if (!status) raise_error(status.error());
  }

 private:
  template <class Work>
  static std::uint64_t call(Work work) {
    const base::Result<std::uint64_t> done = call_without_gil(work);
    if (!done.ok()) raise_error(done.error());
    return *done;
  }

  std::shared_ptr<comm::Comm> comm_;
  std::unique_ptr<engine::SharedFile> file_;
};

}  // namespace

nb::object open_shared_file(std::shared_ptr<comm::Comm> comm, const std::string& path, bool writes,
                            double patience_s, int opened, bool buffered) {
  engine::OpenRequest request{.path = path,
                              .flags = writes ? O_WRONLY | O_CREAT : O_RDONLY,
                              .hints = hints::default_file_hints()};
  request.hints.romio_ds_write = hints::Choice::disable;   // boxes of all ranks leave no holes
  request.hints.pario_run_ahead = hints::Choice::disable;  // all ranks raise the same error
  if (buffered) request.hints.romio_cb_read = hints::Choice::enable;
  request.interrupt = run_signal_handlers;
  request.hints.pario_watchdog = {};  // the callers name absent ranks themselves
  request.hints.pario_patience = std::chrono::milliseconds(
      static_cast<std::int64_t>(std::ceil(std::clamp(patience_s, 1e-3, kLongestPatience) * 1e3)));
  const engine::Opener opener = [opened](const file::OpenRequest& wanted) {
    return opened < 0 ? engine::open_file(wanted) : file::copy_opened(wanted.path, opened);
  };
  auto file = call_without_gil([&] { return engine::SharedFile::open(comm, request, opener); });
  if (!file.ok()) raise_error(file.error());
  return nb::cast(new SharedFile(std::move(comm), std::move(*file)), nb::rv_policy::take_ownership);
}

void add_shared_file(nb::module_& module) {
  LockedClass<SharedFile>(module, "SharedFile")
      .def("write", &SharedFile::write, "boxes"_a)
      .def("read", &SharedFile::read, "boxes"_a)
      .def("maximum", &SharedFile::maximum, "mine"_a)
      .def("close", &SharedFile::close);
}

}  // namespace pario::bindings
