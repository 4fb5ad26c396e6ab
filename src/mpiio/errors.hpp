// From pario's errors to what a program sees of them: error classes, codes with a text, and the error handlers of files.
#pragma once

#include <functional>
#include <string>

#include "base/base.hpp"
#include "mpiio/call.hpp"

namespace pario::mpiio {

/// What a call comes to: success, or an error class of the MPI at hand and the words for MPI_Error_string.
struct Outcome {
  int error_class = 0;
  std::string text = {};
  bool ok() const { return error_class == 0; }
};

/// Outcome of pario's own checks: "MPI_File_seek: ...".
Outcome refuse(int error_class, const Call& call, const std::string& why);
/// The outcome as an error of the engine, which tells it to all ranks; outcome_of() gives the class
/// back.
base::Error error_of(const Outcome& outcome, const Call& call);
/// Outcome of the engine: the one table from errno to error class.
Outcome outcome_of(const base::Error& error);
Outcome outcome_of(const base::Status& status);

/// An error code of the outcome's class whose MPI_Error_string is its text (that of the last error of the class); 0 for success.
int code_of(const Outcome& outcome);

/// What a file does with errors.
struct Handler {
  enum class Kind : std::uint8_t { returns, fatal, abort, user } kind = Kind::returns;
  Word handle = 0;
  void* function = nullptr;
  bool fortran = false;
};

/// The handler of MPI_FILE_NULL: where errors without a file go, and what new files get.
Handler default_handler();

struct File;
/// Calls the error handler of the file (null: the default one), unless it is a success. Returns the code for the program, which a handler
/// of the program's may have changed.
Word raise(File* file, const Outcome& outcome);
/// As above, with a code that the program chose.
int call_handler(File* file, int code, const std::string& text);

/// A file keeps its handler from being freed.
void keep(const Handler& handler);
void release(const Handler& handler);

}  // namespace pario::mpiio
