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
struct Open : chain::OnPath {
  static int call(auto next, int directory, const char* path, int flags, auto... mode) {
    return open_or_reopen(directory, path, flags,
                          [&] { return next(visible_number(directory), path, flags, mode...); });
  }
};
struct Create {
  static int call(auto next, const char* path, mode_t mode) {
    return open_or_reopen(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC,
                          [&] { return next(path, mode); });
  }
};

struct Close {
  static int call(auto next, int descriptor) {
    if (keep_open(descriptor).kept) return 0;
    const int number = prepare(descriptor);
    record_standard_number(descriptor, false);
    return next(number);
  }
};

/// fopen and freopen.
struct OpenStream {
  static std::FILE* call(auto next, const char* path, const char* mode) {
    if (std::FILE* kept = reopen(path, mode)) return kept;
    write_pending(AT_FDCWD, path);
    std::FILE* stream = next(path, mode);
    if (stream == nullptr && errno == EMFILE && close_all_kept()) stream = next(path, mode);
    record_open(path, mode, stream);
    return stream;
  }
  static std::FILE* call(auto next, const char* path, const char* mode, std::FILE* old) {
    if (old != nullptr) forget(old->_fileno);
    write_pending(AT_FDCWD, path);
    std::FILE* stream = next(path, mode, old);
    if (stream != nullptr) mark_observable(stream->_fileno);
    return stream;
  }
};

struct CloseStream {
  static int call(auto next, std::FILE* stream) {
    const CloseResult closed = stream == nullptr ? CloseResult{} : keep_open(stream);
    if (closed.kept) return 0;
    if (stream != nullptr) forget(stream->_fileno);
    const int result = next(stream);
    return closed.error == 0 ? result : static_cast<int>(buffering::set_errno(-closed.error));
  }
};

/// close_range and closefrom.
struct CloseRange {
  static auto call(auto next, auto first, auto... rest) {
    close_all_kept();
    forget(0, UINT_MAX);
    name_watch::stop();
    return next(first, rest...);
  }
};

/// dup, dup2 and dup3.
struct Duplicate {
  static int call(auto next, int original) {
    const int copy = next(prepare(original));
    record_standard_number(copy, true);
    return copy;
  }
  static int call(auto next, int original, int copy, auto... flags) {
    if (original != copy) {
      if (name_watch::is_own(copy)) name_watch::stop();
      prepare(copy);
      close_kept(copy);
      forget(copy);
    }
    const int result = next(prepare(original), copy, flags...);
    record_standard_number(result, true);
    return result;
  }
};

/// fcntl. All kept handles are closed before a lock, because closing any descriptor of a file ends
/// the locks of the process on it.
struct Control {
  static int call(auto next, int descriptor, int command, long argument) {
    if (chain::kind_of(command) == chain::FcntlKind::lock || command == F_SETLEASE)
      close_all_kept();
    const int number = prepare(descriptor);
    if (command == F_SETFD) forget(number);
    return next(number, command, argument);
  }
};

/// A call on a descriptor (first argument).
struct Use {
  static auto call(auto next, int descriptor, auto... args) {
    if constexpr (locks(next.kSymbol)) close_all_kept();
    if constexpr (changes_permissions(next.kSymbol)) expire_names_of(visible_number(descriptor));
    const int number = prepare(descriptor);
    if constexpr (next.kSymbol == Symbol::fdopen) {
      forget(number);
      mark_observable(number);
    }
    return next(number, args...);
  }
};

/// A call on a descriptor (second argument).
struct UseSecond {
  static auto call(auto next, auto first, int descriptor, auto... args) {
    return next(first, prepare(descriptor), args...);
  }
};

/// mmap.
struct Map {
  static auto call(auto next, auto a, auto b, auto c, auto d, int descriptor, auto... args) {
    const int number = prepare(descriptor);
    if (number >= 0) mark_observable(number);
    return next(a, b, c, d, number, args...);
  }
};

/// sendfile.
struct Between {
  static ssize_t call(auto next, int out, int in, off_t* offset, size_t size) {
    return next(prepare(out), prepare(in), offset, size);
  }
};

/// copy_file_range and splice.
struct BetweenAt {
  static ssize_t call(auto next, int in, off_t* in_offset, int out, off_t* out_offset, size_t size,
                      unsigned flags) {
    return next(prepare(in), in_offset, prepare(out), out_offset, size, flags);
  }
};

/// A call on a path.
struct Path : chain::OnPath {
  static auto call(auto next, int directory, const char* path, auto... args) {
    write_pending(visible_number(directory), path);
    if constexpr (expires_name(next.kSymbol)) expire_name(directory, path);
    if constexpr (renames(next.kSymbol)) expire_all_names();
    return next(visible_number(directory), path, args...);
  }
};

/// The stat functions by name. Their result identifies the file: if it has pending bytes, they are
/// written and the call is repeated.
struct Stat {
  static int call(auto next, auto... args) {
    const int result = next(args...);
    if (result != 0 || pending_entries.load(std::memory_order_acquire) == 0) return result;
    const auto* status = static_cast<const struct stat*>(std::get<void*>(std::tuple(args...)));
    return write_pending_of(*status) ? next(args...) : result;
  }
};

/// ioctl: the effect of a request may outlast a descriptor that stays open, or concern permissions.
struct Ioctl {
  static int call(auto next, int descriptor, unsigned long request, void* argument) {
    const int number = prepare(descriptor);
    if (buffering::handle_of(number) != nullptr) expire_names_of(number);
    return next(number, request, argument);
  }
};

/// sendmsg: the receiver of the message may use the files of its descriptors.
struct Send {
  static auto call(auto next, int socket, auto* message, auto number, auto... flags) {
    bool any = false;
    buffering::for_each_sent_descriptor(message, number, [&](int) { any = true; });
    if (any) close_all_kept();
    return next(socket, message, number, flags...);
  }
};

/// A call after which another program may have copies of descriptors, that synchronises all files,
/// or that ends the process.
struct CloseKept {
  static auto call(auto next, auto... args) {
    close_all_kept();
    return next(args...);
  }
};

/// _Fork, which runs no handlers of pthread_atfork.
struct Fork {
  static pid_t call(auto next) {
    before_fork();
    const pid_t child = next();
    if (child == 0) after_fork_in_child();
    return child;
  }
};

}  // namespace

void before_fork() { close_all_kept(); }

void after_fork_in_child() { forget_all(); }

#define PARIO_THIS_LAYER handles
#include "layers/chain/treatment_of.def"

}  // namespace pario::handles
