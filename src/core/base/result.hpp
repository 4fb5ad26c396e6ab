// Errors as values: the failed operation, its place and rank. Uses the heap: not for the tracer.
#pragma once

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "core/base/extent.hpp"

namespace pario::base {

/// The reason of a failure. Only the outermost layer translates it (to an MPI error class, an
/// exception, an errno).
struct Error {
  /// An errno, also for reasons of pario's own (EINVAL, ENOTSUP); negative: a code of the caller,
  /// without a name here.
  int number = 0;
  const char* operation = "";  ///< static text: "pwrite", "write_at_all"
  std::string path = {};
  Extent where = {};        ///< bytes of the file; empty: none in particular
  int rank = -1;            ///< of the communicator of the file; -1: not known
  std::string detail = {};  ///< the expectation, or other help

  /// "pwrite /scratch/a.h5 [4096, 8192): ENOSPC (No space left on device), rank 3: detail"
  std::string text() const;
};

/// The error of a system call on a path; `number` is its errno.
inline Error path_error(const char* operation, std::string path, int number = errno,
                        std::string detail = {}) {
  return {.number = number,
          .operation = operation,
          .path = std::move(path),
          .detail = std::move(detail)};
}

// Callers check ok() before value() and error(), as with std::expected.
// NOLINTBEGIN(bugprone-unchecked-optional-access)

/// Success, or an Error.
class [[nodiscard]] Status {
 public:
  Status() {}  // NOLINT(modernize-use-equals-default): that would have `return {}` fill all of an
               // Error with zeros
  Status(Error error)
      : error_(std::move(error)) {
  }  // NOLINT(google-explicit-constructor): a function returns either
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }
  Error& error() { return *error_; }

 private:
  std::optional<Error> error_;
};

/// A value, or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}       // NOLINT(google-explicit-constructor)
  Result(Error error) : status_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return status_.ok(); }
  explicit operator bool() const { return ok(); }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  const Error& error() const { return status_.error(); }
  const Status& status() const { return status_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// NOLINTEND(bugprone-unchecked-optional-access)

}  // namespace pario::base
