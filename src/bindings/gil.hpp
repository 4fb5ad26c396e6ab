// Python's lock, let go where work is done and taken again: also by daemon threads, which Python leaves behind when it ends.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <exception>

namespace pario::bindings {

/// Of a thread that wants back to Python when that has ended: keeps still until the process has, as CPython has it do from 3.14 on.
/// Before, CPython unwinds its stack, which is not to pass destructors, rooms and nanobind: they would end the process.
[[noreturn]] inline void stay() {
  for (;;) ::pause();
}

/// Python runs without this thread.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      stay();
    }
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

/// The opposite, in work that was begun without it.
class Acquired {
 public:
  Acquired() : state_(ensure()) {}
  ~Acquired() { PyGILState_Release(state_); }
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

 private:
  static PyGILState_STATE ensure() {
    try {
      return PyGILState_Ensure();
    } catch (...) {
      stay();
    }
  }

  PyGILState_STATE state_;
};

/// Calls a function of Python, in which that may end, too.
template <class... Arguments>
nanobind::object call(nanobind::handle function, const Arguments&... arguments) {
  const nanobind::tuple all = nanobind::make_tuple(arguments...);
  PyObject* result = nullptr;
  try {
    result = PyObject_CallObject(function.ptr(), all.ptr());
  } catch (...) {
    stay();
  }
  if (result == nullptr) throw nanobind::python_error();
  return nanobind::steal(result);
}

/// Returns what `with_python` raises, in work that was begun without Python: no exceptions through rooms.
template <class WithPython>
std::exception_ptr raised_by(WithPython with_python) {
  const Acquired acquired;
  try {
    with_python();
    return {};
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace pario::bindings
