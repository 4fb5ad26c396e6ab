#include "parallel/mpiio/errors.hpp"

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

#include "core/trace/trace.hpp"
#include "parallel/mpiio/file.hpp"
#include "parallel/mpiio/implementations.hpp"
#include "parallel/mpiio/library.hpp"
#include "parallel/mpiio/mpiio.hpp"

namespace pario::mpiio {
namespace {

constexpr std::size_t kLongestText =
    255;  // MPI_MAX_ERROR_STRING of Open MPI, the smallest of all MPIs, without the zero

/// Maps numbers of the engine's errors to classes. Negative numbers are classes already (error_of).
int class_of(int number) {
  if (number < 0) return -number;
  switch (number) {
    case ENOENT:
      return k(MPI_ERR_NO_SUCH_FILE);
    case EEXIST:
      return k(MPI_ERR_FILE_EXISTS);
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
      return k(MPI_ERR_BAD_FILE);
    case EACCES:
    case EPERM:
    case EBADF:
      return k(MPI_ERR_ACCESS);
    case EROFS:
      return k(MPI_ERR_READ_ONLY);
    case ENOSPC:
    case EFBIG:
      return k(MPI_ERR_NO_SPACE);
    case EDQUOT:
      return k(MPI_ERR_QUOTA);
    case EBUSY:
    case ETXTBSY:
      return k(MPI_ERR_FILE_IN_USE);
    case ENOTSUP:
    case ENOSYS:
      return k(MPI_ERR_UNSUPPORTED_OPERATION);
    case ENOMEM:
      return k(MPI_ERR_NO_MEM);
    default:
      return k(MPI_ERR_IO);
  }
}

/// The error codes that pario has made, by class. Never destroyed: destructors call MPI, too.
struct Codes {
  std::mutex mutex;
  std::map<int, int> by_class;
  std::map<int, std::string>
      texts;  ///< texts by code, if the MPI does not keep them: MPICH 4 returns another text
};

Codes& codes() {
  static Codes& instance = *new Codes;
  return instance;
}

bool keeps_texts(int code) {
  constexpr const char* probe = "pario";
  char text[1024] = {};
  int length = 0;
  return lib().add_error_string(code, probe) == 0 && lib().error_string(code, text, &length) == 0 &&
         std::string_view(text) == probe;
}

/// Makes a code of the class for a text; returns the class itself if the MPI refuses.
int make_code(Codes& all, int error_class) {
  int code = 0, back = 0;
  if (lib().add_error_code(error_class, &code) != 0 || lib().error_class(code, &back) != 0 ||
      back != error_class)
    return error_class;
  if (!keeps_texts(code)) all.texts[code] = {};
  return code;
}

struct UserHandler {
  void* function = nullptr;
  bool fortran = false;
  int references = 1;
};

/// Error handlers of files: the default one and those of programs. Never destroyed: destructors
/// call MPI, too.
struct Handlers {
  std::mutex mutex;
  Handler standard = {.handle = 0};
  bool standard_known = false;
  std::map<Word, UserHandler> users;
};

Handlers& handlers() {
  static Handlers& instance = *new Handlers;
  return instance;
}

bool is_predefined(Word handle) {
  return handle == h(MPI_ERRORS_RETURN) || handle == h(MPI_ERRORS_ARE_FATAL) ||
         handle == h(MPI_ERRORS_ABORT);
}

/// Decodes a handle of MPI_Errhandler; false: it is unknown.
bool describe(Word handle, Handler& handler) {
  handler = {.handle = handle};
  if (handle == h(MPI_ERRORS_RETURN)) return true;
  if (handle == h(MPI_ERRORS_ARE_FATAL)) handler.kind = Handler::Kind::fatal;
  if (handle == h(MPI_ERRORS_ABORT)) handler.kind = Handler::Kind::abort;
  if (handler.kind != Handler::Kind::returns) return true;
  auto& all = handlers();
  const std::lock_guard lock(all.mutex);
  const auto found = all.users.find(handle);
  if (found == all.users.end()) return false;
  handler = {Handler::Kind::user, handle, found->second.function, found->second.fortran};
  return true;
}

void end_program(const Handler& handler, int code, const std::string& text) {
  trace::message(text.empty()
                     ? "an error of MPI-IO is fatal, because the file's error handler says so"
                     : text.c_str());
  const Word world = handler.kind == Handler::Kind::abort ? h(MPI_COMM_SELF) : h(MPI_COMM_WORLD);
  lib().abort(world, code);
}

int call_user(const Handler& handler, Word handle, int code) {
  if (handler.fortran) {
    int index = static_cast<int>(to_fortran(Call{"MPI_File_c2f", &handle, false}));
    reinterpret_cast<void (*)(int*, int*)>(handler.function)(&index, &code);
  } else {
    reinterpret_cast<void (*)(Word*, int*, ...)>(handler.function)(&handle, &code);
  }
  return code;
}

}  // namespace

Outcome refuse(int error_class, const Call& call, const std::string& why) {
  return {error_class, std::string(call.name) + ": " + why};
}

base::Error error_of(const Outcome& outcome, const Call& call) {
  const std::string begin = std::string(call.name) + ": ";
  const bool named = outcome.text.starts_with(begin);  // error.text() repeats the beginning
  return {.number = -outcome.error_class,
          .operation = call.name,
          .detail = outcome.text.substr(named ? begin.size() : 0)};
}

Outcome outcome_of(const base::Error& error) { return {class_of(error.number), error.text()}; }

Outcome outcome_of(const base::Status& status) {
  return status.ok() ? Outcome{} : outcome_of(status.error());
}

int code_of(const Outcome& outcome) {
  auto& all = codes();
  if (outcome.ok()) return 0;
  const std::lock_guard lock(all.mutex);
  auto [entry, added] = all.by_class.try_emplace(outcome.error_class, 0);
  if (added) entry->second = make_code(all, outcome.error_class);
  const int code = entry->second;
  const std::string text = outcome.text.substr(0, kLongestText);
  if (const auto own = all.texts.find(code); own != all.texts.end()) {
    own->second = text;
  } else if (code != outcome.error_class) {
    lib().add_error_string(code, text.c_str());
  }
  return code;
}

Word error_string(const Call& call) {
  auto& all = codes();
  const std::lock_guard lock(all.mutex);
  const auto own = all.texts.find(call.integer(0));
  if (own == all.texts.end())
    return static_cast<Word>(
        lib().error_string(call.integer(0), call.pointer<char>(1), call.pointer<int>(2)));
  std::strcpy(call.pointer<char>(1), own->second.c_str());
  *call.pointer<int>(2) = static_cast<int>(own->second.size());
  return 0;
}

Handler default_handler() {
  auto& all = handlers();
  const std::lock_guard lock(all.mutex);
  if (!all.standard_known) all.standard.handle = h(MPI_ERRORS_RETURN);
  all.standard_known = true;
  return all.standard;
}

void retain_handler(const Handler& handler) {
  if (handler.kind != Handler::Kind::user) return;
  auto& all = handlers();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.users.find(handler.handle); found != all.users.end())
    ++found->second.references;
}

void release_handler(const Handler& handler) {
  if (handler.kind != Handler::Kind::user) return;
  auto& all = handlers();
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.users.find(handler.handle);
    if (found == all.users.end() || --found->second.references > 0) return;
    all.users.erase(found);
  }
  Word handle = handler.handle;
  lib().errhandler_free(&handle);
}

int call_handler(OpenFile* file, int code, const std::string& text) {
  const Handler handler = file ? file->handler : default_handler();
  if (handler.kind == Handler::Kind::user)
    return call_user(handler, file ? reinterpret_cast<Word>(file) : h(MPI_FILE_NULL), code);
  if (handler.kind != Handler::Kind::returns) end_program(handler, code, text);
  return code;
}

Word raise(OpenFile* file, const Outcome& outcome) {
  if (outcome.ok()) return 0;
  return static_cast<Word>(call_handler(file, code_of(outcome), outcome.text));
}

void remember_handler(Word handle, void* function, bool fortran) {
  auto& all = handlers();
  const std::lock_guard lock(all.mutex);
  all.users[handle] = {function, fortran};
}

void note_fortran_handler(int index, void* function) {
  const char* const name =
      lib().flavour == mpi::Flavour::standard ? "PMPI_Errhandler_fromint" : "PMPI_Errhandler_f2c";
  if (lib().flavour == mpi::Flavour::mpich)
    return remember_handler(lib().handle(static_cast<Word>(index)), function, true);
  if (void* const from_index = mpi::find(name))
    remember_handler(reinterpret_cast<Word (*)(int)>(from_index)(index), function, true);
}

Word create_errhandler(const Call& call) {
  const int result = lib().file_create_errhandler(call.pointer<void>(0), call.pointer<Word>(1));
  if (result == 0) remember_handler(lib().handle_at(call[1]), call.pointer<void>(0), false);
  return static_cast<Word>(result);
}

Word set_errhandler(const Call& call) {
  Handler handler;
  const auto file = find(call[0]);
  if (!file && !is_file_null(call[0]))
    return raise(nullptr, refuse(k(MPI_ERR_FILE), call, "this is no open file"));
  if (!describe(lib().handle(call[1]), handler))
    return raise(file.get(), refuse(k(MPI_ERR_ARG), call, "this is no error handler for files"));
  retain_handler(handler);
  auto& all = handlers();
  default_handler();
  Handler& place = file ? file->handler : all.standard;
  const Handler before = std::exchange(place, handler);
  release_handler(before);
  return 0;
}

Word get_errhandler(const Call& call) {
  const auto file = find(call[0]);
  if (!file && !is_file_null(call[0]))
    return raise(nullptr, refuse(k(MPI_ERR_FILE), call, "this is no open file"));
  const Handler handler = file ? file->handler : default_handler();
  retain_handler(handler);
  lib().set_handle_at(call[1], 0, handler.handle);
  return 0;
}

Word call_errhandler(const Call& call) {
  const auto file = find(call[0]);
  if (!file && !is_file_null(call[0]))
    return raise(nullptr, refuse(k(MPI_ERR_FILE), call, "this is no open file"));
  call_handler(file.get(), call.integer(1), {});
  return 0;
}

Word free_errhandler(const Call& call) {
  const Word handle = lib().handle_at(call[0]);
  auto& all = handlers();
  // Open MPI counts references of predefined handlers, too; MPI_File_get_errhandler returned them
  // without a call of the MPI.
  if (is_predefined(handle)) {
    lib().set_handle_at(call[0], 0, h(MPI_ERRHANDLER_NULL));
    return 0;
  }
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.users.find(handle);
    if (found != all.users.end() && --found->second.references > 0) {
      lib().set_handle_at(call[0], 0, h(MPI_ERRHANDLER_NULL));
      return 0;
    }
    if (found != all.users.end()) all.users.erase(found);
  }
  return static_cast<Word>(lib().errhandler_free(call.pointer<Word>(0)));
}

}  // namespace pario::mpiio
