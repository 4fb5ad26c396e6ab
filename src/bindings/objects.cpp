// Objects of stores, which Python's libraries read and write (pario.objects).
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"
#include "core/file/block_cache.hpp"
#include "core/file/objects.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

/// The Error of an exception of Python. The caller has the GIL.
base::Error error_of(const std::exception_ptr& exception, const char* operation,
                     const std::string& url) {
  base::Error error{.number = EIO, .operation = operation, .path = url};
  try {
    std::rethrow_exception(exception);
  } catch (nb::python_error& raised) {
    if (raised.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();  // raised by the caller
    const nb::object number = nb::getattr(raised.value(), "errno", nb::none());
    const nb::object text = nb::getattr(raised.value(), "strerror", nb::none());
    if (nb::isinstance<nb::int_>(number)) error.number = nb::cast<int>(number);
    error.detail = text.is_none() ? nb::cast<std::string>(nb::str(raised.value()))
                                  : nb::cast<std::string>(nb::str(text));
  } catch (const std::exception& other) {
    error.detail = other.what();
  }
  return error;
}

/// Bytes of an object with the buffer protocol.
class View {
 public:
  explicit View(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~View() { PyBuffer_Release(&view_); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_ = {};
};

/// Calls the methods of an object of Python, which raise OSError.
class PythonStore : public file::ObjectStore {
 public:
  explicit PythonStore(nb::object store) : store_(std::move(store)) {}
  /// The interpreter may have ended: the object stays.
  ~PythonStore() override { store_.release(); }

  base::Result<file::ObjectFacts> open(const std::string& url, std::uint64_t tail) override {
    file::ObjectFacts facts;
    const base::Status status = with_python("open", url, [&] {
      const nb::object found = call(store_.attr("open"), url, tail);
      facts.size = nb::cast<std::uint64_t>(found[0]);
      facts.modified = nb::cast<std::int64_t>(found[1]);
      facts.version = nb::cast<std::string>(found[2]);
      const nb::object bytes = found[3];
      const View view(bytes);
      facts.tail.assign(view.bytes().begin(), view.bytes().end());
    });
    if (!status) return status.error();
    if (facts.tail.size() <= facts.size) return facts;
    return base::Error{.number = EIO, .operation = "open", .path = url, .detail = "wrong size"};
  }

  base::Status read(const std::string& url, const file::ObjectFacts& facts, std::uint64_t offset,
                    std::span<std::byte> out) override {
    std::uint64_t got = 0;
    const base::Status status = with_python("read", url, [&] {
      const nb::object bytes =
          call(store_.attr("read"), url, facts.version, facts.size, offset, offset + out.size());
      const View view(bytes);
      got = view.bytes().size();
      if (got == out.size()) std::memcpy(out.data(), view.bytes().data(), got);
    });
    if (!status || got == out.size()) return status;
    return base::Error{.number = ESTALE,
                       .operation = "read",
                       .path = url,
                       .where = base::Extent::at(offset, out.size()),
                       .detail = "the store sent " + std::to_string(got) + " bytes"};
  }

  base::Status write(const std::string& url, std::span<const std::byte> data) override {
    return with_python("write", url, [&] {
      call(store_.attr("write"), url, nb::bytes(data.data(), data.size()));
    });
  }

  base::Status remove(const std::string& url) override {
    return with_python("remove", url, [&] { call(store_.attr("remove"), url); });
  }

 private:
  template <class Work>
  static base::Status with_python(const char* operation, const std::string& url, Work work) {
    const Acquired acquired;
    try {
      work();
      return {};
    } catch (...) {
      return error_of(std::current_exception(), operation, url);
    }
  }

  nb::object store_;
};

/// Returns the directory of PARIO_BLOCK_CACHE, its limit, and the bytes that it has; none: the
/// variable is not set. Raises OSError if it has a wrong value.
std::optional<std::tuple<nb::bytes, std::uint64_t, std::uint64_t>> describe_block_cache() {
  const auto cache = file::BlockCache::of_environment();
  if (!cache.ok()) raise_os_error(cache.error());
  if (!*cache) return {};
  const std::string& directory = (*cache)->directory();
  return std::tuple(to_bytes(directory), (*cache)->most(), (*cache)->bytes());
}

/// Opens objects, or misses them, at the same time. Within KeptObjects.
void open_together(const std::vector<nb::bytes>& urls) {
  const std::vector<std::string> names = texts_of(urls);
  const Released released;  // the requests are made by Python
  file::open_together(names);
}

/// A context in which each object is opened once.
class KeptScope {
 public:
  void enter() { kept_ = std::make_unique<file::KeptObjects>(); }
  void exit(const nb::args&) { kept_.reset(); }

 private:
  std::unique_ptr<file::KeptObjects> kept_;
};

}  // namespace

void add_objects(nb::module_& module) {
  module.def(
      "set_object_store",
      [](nb::object store) {
        file::set_object_store(std::make_shared<PythonStore>(std::move(store)));
      },
      "store"_a);
  module.def("describe_block_cache", describe_block_cache);
  module.def("open_objects", open_together, "urls"_a);
  LockedClass<KeptScope>(module, "KeptObjects")
      .def(nb::init<>())
      .def("__enter__", &KeptScope::enter)
      .def("__exit__", &KeptScope::exit);
}

}  // namespace pario::bindings
