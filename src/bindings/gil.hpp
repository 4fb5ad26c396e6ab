// Scopes that release and acquire the GIL, also in daemon threads, which may outlive the
// interpreter.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <exception>

namespace pario::bindings {

/// Blocks a thread that needs the GIL after the interpreter has ended, until the process ends, as
/// CPython does from 3.14 on. Earlier versions unwind the stack, which must not pass destructors,
/// other modules and nanobind: that would abort the process.
[[noreturn]] inline void stay() {
  for (;;) ::pause();
}

/// Releases the GIL during its lifetime.
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

/// Acquires the GIL during its lifetime, in work that runs without it.
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

/// Calls a function of Python; blocks the thread if the interpreter ends meanwhile.
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

/// Calls `with_python` with the GIL, in work that runs without it. Returns its exception, which
/// must not pass the functions of other modules.
template <class WithPython>
std::exception_ptr catch_exception(WithPython with_python) {
  const Acquired acquired;
  try {
    with_python();
    return {};
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace pario::bindings
