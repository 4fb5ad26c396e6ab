#include "layers/handles/handles.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <tuple>

#include "layers/buffering/buffering.hpp"
#include "layers/chain/fcntl_command.hpp"
#include "layers/handles/kept_handles.hpp"
#include "layers/handles/pending_bytes.hpp"

namespace pario::handles {
namespace {

using chain::None;
using symbols::Symbol;

template <Symbol symbol, class Result, class... Args>
Result next(Args... args) {
  return chain::next<chain::LayerId::handles, symbol, Result>(args...);
}
template <Symbol symbol, class Work, class Function>
using OnPath = chain::OnPath<chain::LayerId::handles, symbol, Work, Function>;

/// Before a call on a descriptor: writes the pending bytes of its file, and returns
/// visible_number().
int prepare(int descriptor) {
  const int number = visible_number(descriptor);
  write_pending(number);
  return number;
}

/// True for calls on a path that remove it from its file or change the permissions of the file.
constexpr bool expires_name(Symbol symbol) {
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
/// True for calls on a descriptor that change the permissions of its file, attributes included.
constexpr bool changes_permissions(Symbol symbol) {
  return symbol == Symbol::fchmod || symbol == Symbol::fchown || symbol == Symbol::fsetxattr ||
         symbol == Symbol::fremovexattr;
}
constexpr bool renames(Symbol symbol) {
  return symbol == Symbol::rename || symbol == Symbol::renameat || symbol == Symbol::renameat2;
}
constexpr bool locks(Symbol symbol) { return symbol == Symbol::lockf || symbol == Symbol::lockf64; }

/// Opens a file; if descriptors are exhausted, closes all kept handles and tries again.
template <class OpenFile>
int open_with_retry(OpenFile open) {
  const int descriptor = open();
  return descriptor < 0 && errno == EMFILE && close_all_kept() ? open() : descriptor;
}

/// Returns a kept handle, or the descriptor that `open` opens.
template <class OpenFile>
int open_or_reopen(int directory, const char* path, int flags, OpenFile open) {
  if (const int kept = reopen(directory, path, flags); kept >= 0) return kept;
  write_pending(directory, path);
  const int descriptor = open_with_retry(open);
  record_open(directory, path, flags, descriptor);
  return descriptor;
}

/// open and openat.
struct OpenFile {
  static int call(auto next, int directory, const char* path, int flags, auto... mode) {
    return open_or_reopen(directory, path, flags,
                          [&] { return next(visible_number(directory), path, flags, mode...); });
  }
};
template <Symbol symbol, class Function>
using Open = OnPath<symbol, OpenFile, Function>;

template <Symbol, class>
struct Create;
template <Symbol symbol>
struct Create<symbol, int(const char*, mode_t)> {
  static int call(const char* path, mode_t mode) {
    return open_or_reopen(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC,
                          [&] { return next<symbol, int>(path, mode); });
  }
};

template <Symbol, class>
struct Close;
template <Symbol symbol>
struct Close<symbol, int(int)> {
  static int call(int descriptor) {
    if (keep_open(descriptor).kept) return 0;
    const int number = prepare(descriptor);
    record_standard_number(descriptor, false);
    return next<symbol, int>(number);
  }
};

/// fopen and freopen.
template <Symbol, class>
struct OpenStream;
template <Symbol symbol>
struct OpenStream<symbol, std::FILE*(const char*, const char*)> {
  static std::FILE* call(const char* path, const char* mode) {
    if (std::FILE* kept = reopen(path, mode)) return kept;
    write_pending(AT_FDCWD, path);
    std::FILE* stream = next<symbol, std::FILE*>(path, mode);
    if (stream == nullptr && errno == EMFILE && close_all_kept())
      stream = next<symbol, std::FILE*>(path, mode);
    record_open(path, mode, stream);
    return stream;
  }
};
template <Symbol symbol>
struct OpenStream<symbol, std::FILE*(const char*, const char*, std::FILE*)> {
  static std::FILE* call(const char* path, const char* mode, std::FILE* old) {
    if (old != nullptr) forget(old->_fileno);
    write_pending(AT_FDCWD, path);
    std::FILE* stream = next<symbol, std::FILE*>(path, mode, old);
    if (stream != nullptr) mark_observable(stream->_fileno);
    return stream;
  }
};

template <Symbol, class>
struct CloseStream;
template <Symbol symbol>
struct CloseStream<symbol, int(std::FILE*)> {
  static int call(std::FILE* stream) {
    const CloseResult closed = stream == nullptr ? CloseResult{} : keep_open(stream);
    if (closed.kept) return 0;
    if (stream != nullptr) forget(stream->_fileno);
    const int result = next<symbol, int>(stream);
    return closed.error == 0 ? result : static_cast<int>(buffering::set_errno(-closed.error));
  }
};

/// close_range and closefrom.
template <Symbol, class>
struct CloseRange;
template <Symbol symbol, class Result, class First, class... Rest>
struct CloseRange<symbol, Result(First, Rest...)> {
  static Result call(First first, Rest... rest) {
    close_all_kept();
    forget(0, UINT_MAX);
    name_watch::stop();
    return next<symbol, Result>(first, rest...);
  }
};

/// dup, dup2 and dup3.
template <Symbol, class>
struct Duplicate;
template <Symbol symbol>
struct Duplicate<symbol, int(int)> {
  static int call(int original) {
    const int copy = next<symbol, int>(prepare(original));
    record_standard_number(copy, true);
    return copy;
  }
};
template <Symbol symbol, class... Flags>
struct Duplicate<symbol, int(int, int, Flags...)> {
  static int call(int original, int copy, Flags... flags) {
    if (original != copy) {
      if (name_watch::is_own(copy)) name_watch::stop();
      prepare(copy);
      close_kept(copy);
      forget(copy);
    }
    const int result = next<symbol, int>(prepare(original), copy, flags...);
    record_standard_number(result, true);
    return result;
  }
};

/// fcntl. All kept handles are closed before a lock, because closing any descriptor of a file ends
/// the locks of the process on it.
template <Symbol, class>
struct Control;
template <Symbol symbol>
struct Control<symbol, int(int, int, long)> {
  static int call(int descriptor, int command, long argument) {
    if (chain::kind_of(command) == chain::FcntlKind::lock || command == F_SETLEASE)
      close_all_kept();
    const int number = prepare(descriptor);
    if (command == F_SETFD) forget(number);
    return next<symbol, int>(number, command, argument);
  }
};

/// A call on a descriptor (first argument).
template <Symbol, class>
struct Use;
template <Symbol symbol, class Result, class... Args>
struct Use<symbol, Result(int, Args...)> {
  static Result call(int descriptor, Args... args) {
    if constexpr (locks(symbol)) close_all_kept();
    if constexpr (changes_permissions(symbol)) expire_names_of(visible_number(descriptor));
    const int number = prepare(descriptor);
    if constexpr (symbol == Symbol::fdopen) {
      forget(number);
      mark_observable(number);
    }
    return next<symbol, Result>(number, args...);
  }
};

/// A call on a descriptor (second argument).
template <Symbol, class>
struct UseSecond;
template <Symbol symbol, class Result, class First, class... Args>
struct UseSecond<symbol, Result(First, int, Args...)> {
  static Result call(First first, int descriptor, Args... args) {
    return next<symbol, Result>(first, prepare(descriptor), args...);
  }
};

/// mmap.
template <Symbol, class>
struct Map;
template <Symbol symbol, class Result, class A, class B, class C, class D, class... Args>
struct Map<symbol, Result(A, B, C, D, int, Args...)> {
  static Result call(A a, B b, C c, D d, int descriptor, Args... args) {
    const int number = prepare(descriptor);
    if (number >= 0) mark_observable(number);
    return next<symbol, Result>(a, b, c, d, number, args...);
  }
};

/// sendfile.
template <Symbol, class>
struct Between;
template <Symbol symbol>
struct Between<symbol, ssize_t(int, int, off_t*, size_t)> {
  static ssize_t call(int out, int in, off_t* offset, size_t size) {
    return next<symbol, ssize_t>(prepare(out), prepare(in), offset, size);
  }
};

/// copy_file_range and splice.
template <Symbol, class>
struct BetweenAt;
template <Symbol symbol>
struct BetweenAt<symbol, ssize_t(int, off_t*, int, off_t*, size_t, unsigned)> {
  static ssize_t call(int in, off_t* in_offset, int out, off_t* out_offset, size_t size,
                      unsigned flags) {
    return next<symbol, ssize_t>(prepare(in), in_offset, prepare(out), out_offset, size, flags);
  }
};

/// A call on a path.
template <Symbol symbol>
struct UsePath {
  static auto call(auto next, int directory, const char* path, auto... args) {
    write_pending(visible_number(directory), path);
    if constexpr (expires_name(symbol)) expire_name(directory, path);
    if constexpr (renames(symbol)) expire_all_names();
    return next(visible_number(directory), path, args...);
  }
};
template <Symbol symbol, class Function>
using Path = OnPath<symbol, UsePath<symbol>, Function>;

/// The stat functions by name. Their result identifies the file: if it has pending bytes, they are
/// written and the call is repeated.
template <Symbol, class>
struct Stat;
template <Symbol symbol, class... Args>
struct Stat<symbol, int(Args...)> {
  static int call(Args... args) {
    const int result = next<symbol, int>(args...);
    if (result != 0 || pending_entries.load(std::memory_order_acquire) == 0) return result;
    const auto* status = static_cast<const struct stat*>(std::get<void*>(std::tuple(args...)));
    return write_pending_of(*status) ? next<symbol, int>(args...) : result;
  }
};

/// ioctl: the effect of a request may outlast a descriptor that stays open, or concern permissions.
template <Symbol, class>
struct Ioctl;
template <Symbol symbol>
struct Ioctl<symbol, int(int, unsigned long, void*)> {
  static int call(int descriptor, unsigned long request, void* argument) {
    const int number = prepare(descriptor);
    if (buffering::handle_of(number) != nullptr) expire_names_of(number);
    return next<symbol, int>(number, request, argument);
  }
};

/// sendmsg: the receiver of the message may use the files of its descriptors.
template <Symbol, class>
struct Send;
template <Symbol symbol, class Result, class Message, class Number, class... Flags>
struct Send<symbol, Result(int, Message*, Number, Flags...)> {
  static Result call(int socket, Message* message, Number number, Flags... flags) {
    bool any = false;
    buffering::for_each_sent_descriptor(message, number, [&](int) { any = true; });
    if (any) close_all_kept();
    return next<symbol, Result>(socket, message, number, flags...);
  }
};

/// A call after which another program may have copies of descriptors, that synchronises all files,
/// or that ends the process.
template <Symbol, class>
struct CloseKept;
template <Symbol symbol, class Result, class... Args>
struct CloseKept<symbol, Result(Args...)> {
  static Result call(Args... args) {
    close_all_kept();
    return next<symbol, Result>(args...);
  }
};

template <Symbol, class>
struct Fork;
template <Symbol symbol>
struct Fork<symbol, pid_t()> {
  static pid_t call() {
    close_all_kept();
    const pid_t child = next<symbol, pid_t>();
    if (child == 0) forget_all();
    return child;
  }
};

}  // namespace

#define PARIO_THIS_LAYER handles
#include "layers/chain/treatment_of.def"

}  // namespace pario::handles
