// Errors for the program: error classes, codes with a text, and the error handlers of files.
#pragma once

#include <functional>
#include <string>

#include "core/base/base.hpp"
#include "parallel/mpiio/call.hpp"

namespace pario::mpiio {

/// The outcome of a call: success, or an error class of this MPI with its text.
struct Outcome {
  int error_class = 0;
  std::string text = {};
  bool ok() const { return error_class == 0; }
};

/// Returns the outcome of a failed check of pario: "MPI_File_seek: ...".
Outcome refuse(int error_class, const Call& call, const std::string& why);
/// Returns the outcome as an error of the engine, which shares it with all ranks; outcome_of()
/// restores the class.
base::Error error_of(const Outcome& outcome, const Call& call);
/// Returns the outcome of an engine call: the one table from errno to error class.
Outcome outcome_of(const base::Error& error);
Outcome outcome_of(const base::Status& status);

/// Returns an error code of the outcome's class whose MPI_Error_string is its text (that of the
/// last error of the class); 0 for success.
int code_of(const Outcome& outcome);

/// The error handler of a file.
struct Handler {
  enum class Kind : std::uint8_t { returns, fatal, abort, user } kind = Kind::returns;
  Word handle = 0;
  void* function = nullptr;
  bool fortran = false;
};

/// The handler of MPI_FILE_NULL: for errors without a file, and the default of new files.
Handler default_handler();

struct OpenFile;
/// Calls the error handler of the file (null: the default one) for an error. Returns the code for
/// the program, which a handler may have changed.
Word raise(OpenFile* file, const Outcome& outcome);
/// Calls the handler with a code that the program chose.
int call_handler(OpenFile* file, int code, const std::string& text);

/// Keeps MPI from freeing the handler of an open file.
void retain_handler(const Handler& handler);
void release_handler(const Handler& handler);

}  // namespace pario::mpiio
