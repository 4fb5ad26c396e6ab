// The stand-ins, one template for each treatment of beneath.def; treatments without one here have nothing to do with kept handles.
#include "preload/kept.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "preload/beneath_process.hpp"
#include "preload/control.hpp"
#include "preload/kept_behind.hpp"
#include "preload/kept_places.hpp"
#include "preload/stand_ins.hpp"

namespace pario::preload::kept {
namespace {

constinit StandIns stand_ins;

template <Symbol symbol, class Result, class... Args>
Result next(Args... args) {
  return stand_ins.next<symbol, Result>(args...);
}

/// Calls after which a name means another file, or may no longer be opened.
constexpr bool ends_a_name(Symbol symbol) {
  switch (symbol) {
    case Symbol::unlink:
    case Symbol::unlinkat:
    case Symbol::remove:
    case Symbol::chmod:
    case Symbol::fchmodat:
    case Symbol::chown:
    case Symbol::lchown:
    case Symbol::fchownat:
    case Symbol::setxattr:
    case Symbol::lsetxattr:
    case Symbol::removexattr:
    case Symbol::lremovexattr:
      return true;
    default:
      return false;
  }
}
/// The same by descriptor. Attributes are permissions, too.
constexpr bool changes_permissions(Symbol symbol) {
  return symbol == Symbol::fchmod || symbol == Symbol::fchown || symbol == Symbol::fsetxattr || symbol == Symbol::fremovexattr;
}
constexpr bool renames(Symbol symbol) { return symbol == Symbol::rename || symbol == Symbol::renameat || symbol == Symbol::renameat2; }
constexpr bool locks(Symbol symbol) { return symbol == Symbol::lockf || symbol == Symbol::lockf64; }

template <class Open>
int open_with_room(Open open) {
  const int descriptor = open();
  return descriptor < 0 && errno == EMFILE && give_up_all() ? open() : descriptor;
}

template <Symbol, class>
struct Opening;
template <Symbol symbol, class... Mode>
struct Opening<symbol, int(const char*, int, Mode...)> {
  static int call(const char* path, int flags, Mode... mode) {
    if (const int kept = reopen(AT_FDCWD, path, flags); kept >= 0) return kept;
    write_out(AT_FDCWD, path);
    const int descriptor = open_with_room([&] { return next<symbol, int>(path, flags, mode...); });
    note_open(AT_FDCWD, path, flags, descriptor);
    return descriptor;
  }
};
template <Symbol symbol, class... Mode>
struct Opening<symbol, int(int, const char*, int, Mode...)> {
  static int call(int directory, const char* path, int flags, Mode... mode) {
    if (const int kept = reopen(directory, path, flags); kept >= 0) return kept;
    write_out(directory, path);
    const int descriptor = open_with_room([&] { return next<symbol, int>(told(directory), path, flags, mode...); });
    note_open(directory, path, flags, descriptor);
    return descriptor;
  }
};

template <Symbol, class>
struct Creating;
template <Symbol symbol>
struct Creating<symbol, int(const char*, mode_t)> {
  static int call(const char* path, mode_t mode) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
    if (const int kept = reopen(AT_FDCWD, path, kFlags); kept >= 0) return kept;
    write_out(AT_FDCWD, path);
    const int descriptor = open_with_room([&] { return next<symbol, int>(path, mode); });
    note_open(AT_FDCWD, path, kFlags, descriptor);
    return descriptor;
  }
};

template <Symbol, class>
struct Closing;
template <Symbol symbol>
struct Closing<symbol, int(int)> {
  static int call(int descriptor) {
    if (keep(descriptor).rests) return 0;
    const int number = ready(descriptor);
    note_number(descriptor, false);
    return next<symbol, int>(number);
  }
};

template <Symbol, class>
struct OpeningStream;
template <Symbol symbol>
struct OpeningStream<symbol, std::FILE*(const char*, const char*)> {
  static std::FILE* call(const char* path, const char* mode) {
    if (std::FILE* kept = reopen(path, mode)) return kept;
    write_out(AT_FDCWD, path);
    std::FILE* stream = next<symbol, std::FILE*>(path, mode);
    if (stream == nullptr && errno == EMFILE && give_up_all()) stream = next<symbol, std::FILE*>(path, mode);
    note_open(path, mode, stream);
    return stream;
  }
};
template <Symbol symbol>
struct OpeningStream<symbol, std::FILE*(const char*, const char*, std::FILE*)> {
  static std::FILE* call(const char* path, const char* mode, std::FILE* old) {
    if (old != nullptr) forget(old->_fileno);
    write_out(AT_FDCWD, path);
    std::FILE* stream = next<symbol, std::FILE*>(path, mode, old);
    if (stream != nullptr) note_stranger(stream->_fileno);
    return stream;
  }
};

template <Symbol, class>
struct ClosingStream;
template <Symbol symbol>
struct ClosingStream<symbol, int(std::FILE*)> {
  static int call(std::FILE* stream) {
    const Kept kept = stream == nullptr ? Kept{} : keep(stream);
    if (kept.rests) return 0;
    if (stream != nullptr) forget(stream->_fileno);
    const int result = next<symbol, int>(stream);
    return kept.lost == 0 ? result : static_cast<int>(beneath::answer(-kept.lost));
  }
};

template <Symbol, class>
struct ClosingAll;
template <Symbol symbol, class Result, class First, class... Rest>
struct ClosingAll<symbol, Result(First, Rest...)> {
  static Result call(First first, Rest... rest) {
    give_up_all();
    forget(0, UINT_MAX);
    return next<symbol, Result>(first, rest...);
  }
};

template <Symbol, class>
struct Copying;
template <Symbol symbol>
struct Copying<symbol, int(int)> {
  static int call(int original) {
    const int copy = next<symbol, int>(ready(original));
    note_number(copy, true);
    return copy;
  }
};
template <Symbol symbol, class... Flags>
struct Copying<symbol, int(int, int, Flags...)> {
  static int call(int original, int copy, Flags... flags) {
    if (original != copy) {
      ready(copy);
      give_up(copy);
      forget(copy);
    }
    const int result = next<symbol, int>(ready(original), copy, flags...);
    note_number(result, true);
    return result;
  }
};

/// Closing any descriptor of a file ends the locks that the process has of it.
template <Symbol, class>
struct Control;
template <Symbol symbol>
struct Control<symbol, int(int, int, long)> {
  static int call(int descriptor, int command, long argument) {
    if (kind_of(command) == FcntlKind::lock || command == F_SETLEASE) give_up_all();
    const int number = ready(descriptor);
    if (command == F_SETFD) forget(number);
    return next<symbol, int>(number, command, argument);
  }
};

template <Symbol, class>
struct First;
template <Symbol symbol, class Result, class... Args>
struct First<symbol, Result(int, Args...)> {
  static Result call(int descriptor, Args... args) {
    if constexpr (locks(symbol)) give_up_all();
    if constexpr (changes_permissions(symbol)) give_up_file(told(descriptor));
    const int number = ready(descriptor);
    if constexpr (symbol == Symbol::fdopen) {
      forget(number);
      note_stranger(number);
    }
    return next<symbol, Result>(number, args...);
  }
};

template <Symbol, class>
struct Second;
template <Symbol symbol, class Result, class A, class... Args>
struct Second<symbol, Result(A, int, Args...)> {
  static Result call(A a, int descriptor, Args... args) { return next<symbol, Result>(a, ready(descriptor), args...); }
};

/// A mapping.
template <Symbol, class>
struct Fifth;
template <Symbol symbol, class Result, class A, class B, class C, class D, class... Args>
struct Fifth<symbol, Result(A, B, C, D, int, Args...)> {
  static Result call(A a, B b, C c, D d, int descriptor, Args... args) {
    const int number = ready(descriptor);
    if (number >= 0) note_stranger(number);
    return next<symbol, Result>(a, b, c, d, number, args...);
  }
};

template <Symbol, class>
struct Between;
template <Symbol symbol>
struct Between<symbol, ssize_t(int, int, off_t*, size_t)> {
  static ssize_t call(int out, int in, off_t* offset, size_t size) { return next<symbol, ssize_t>(ready(out), ready(in), offset, size); }
};

template <Symbol, class>
struct BetweenAt;
template <Symbol symbol>
struct BetweenAt<symbol, ssize_t(int, off_t*, int, off_t*, size_t, unsigned)> {
  static ssize_t call(int in, off_t* in_offset, int out, off_t* out_offset, size_t size, unsigned flags) {
    return next<symbol, ssize_t>(ready(in), in_offset, ready(out), out_offset, size, flags);
  }
};

template <Symbol, class>
struct Named;
template <Symbol symbol, class Result, class... Args>
struct Named<symbol, Result(const char*, Args...)> {
  static Result call(const char* path, Args... args) {
    write_out(AT_FDCWD, path);
    if constexpr (ends_a_name(symbol)) give_up(AT_FDCWD, path);
    if constexpr (renames(symbol)) give_up_names();
    return next<symbol, Result>(path, args...);
  }
};

template <Symbol, class>
struct NamedAt;
template <Symbol symbol, class Result, class... Args>
struct NamedAt<symbol, Result(int, const char*, Args...)> {
  static Result call(int directory, const char* path, Args... args) {
    write_out(told(directory), path);
    if constexpr (ends_a_name(symbol)) give_up(directory, path);
    if constexpr (renames(symbol)) give_up_names();
    return next<symbol, Result>(told(directory), path, args...);
  }
};

template <Symbol, class>
struct Told;
/// The answer itself says what file it is about: it is asked for again where bytes had to be written.
template <Symbol symbol, class... Args>
struct Told<symbol, int(Args...)> {
  static int call(Args... args) {
    const int result = next<symbol, int>(args...);
    if (result != 0 || unwritten.load(std::memory_order_acquire) == 0) return result;
    const auto* told = static_cast<const struct stat*>(std::get<void*>(std::tuple(args...)));
    return write_out_file(*told) ? next<symbol, int>(args...) : result;
  }
};

/// What it asks for may outlast a descriptor that is not closed, or say who may open the file.
template <Symbol, class>
struct Asking;
template <Symbol symbol>
struct Asking<symbol, int(int, unsigned long, void*)> {
  static int call(int descriptor, unsigned long request, void* argument) {
    const int number = ready(descriptor);
    if (beneath::handle_of(number) != nullptr) give_up_file(number);
    return next<symbol, int>(number, request, argument);
  }
};

template <Symbol, class>
struct Handing;
template <Symbol symbol, class Result, class Message, class Number, class... Flags>
struct Handing<symbol, Result(int, Message*, Number, Flags...)> {
  static Result call(int socket, Message* message, Number number, Flags... flags) {
    bool any = false;
    beneath::each_carried(message, number, [&](int) { any = true; });
    if (any) give_up_all();
    return next<symbol, Result>(socket, message, number, flags...);
  }
};

/// Another program may get copies of descriptors, or this one ends.
template <Symbol, class>
struct Leaving;
template <Symbol symbol, class Result, class... Args>
struct Leaving<symbol, Result(Args...)> {
  static Result call(Args... args) {
    give_up_all();
    return next<symbol, Result>(args...);
  }
};

template <Symbol, class>
struct Forking;
template <Symbol symbol>
struct Forking<symbol, pid_t()> {
  static pid_t call() {
    give_up_all();
    const pid_t child = next<symbol, pid_t>();
    if (child == 0) forget_all();
    return child;
  }
};

/// Nothing to do.
template <Symbol, class>
struct Plain {};

#define PARIO_SAME(treatment, other)       \
  template <Symbol symbol, class Function> \
  using treatment = other<symbol, Function>;
PARIO_SAME(Reading, First)
PARIO_SAME(ReadingAt, First)
PARIO_SAME(Writing, First)
PARIO_SAME(WritingAt, First)
PARIO_SAME(Seeking, First)
PARIO_SAME(Settled, First)
PARIO_SAME(Flushed, First)
PARIO_SAME(Left, First)
PARIO_SAME(SettledSecond, Second)
PARIO_SAME(Mapping, Fifth)
PARIO_SAME(Unmapping, Plain)
PARIO_SAME(AllSettled, Leaving)
PARIO_SAME(Spawning, Leaving)
PARIO_SAME(Waiting, Leaving)
PARIO_SAME(Executing, Leaving)
PARIO_SAME(ToldAt, NamedAt)
PARIO_SAME(LeftRequest, Plain)
PARIO_SAME(AllLeft, Plain)
PARIO_SAME(KeepingBuffer, Plain)
PARIO_SAME(FlushingStream, Plain)
#undef PARIO_SAME

template <class Treatment>
void* function_of() {
  if constexpr (requires { &Treatment::call; })
    return reinterpret_cast<void*>(&Treatment::call);
  else
    return nullptr;
}

void* treatment_of(Symbol symbol) {
  switch (symbol) {
#define PARIO_BENEATH(name, treatment, ...) \
  case Symbol::name:                        \
    return function_of<treatment<Symbol::name, __VA_ARGS__>>();
#include "preload/beneath.def"
#undef PARIO_BENEATH
    default:
      return nullptr;
  }
}

}  // namespace

void* stand_in(Symbol symbol, void* function) { return wanted() ? stand_ins.put(symbol, treatment_of(symbol), function) : function; }

}  // namespace pario::preload::kept
