#include "layers/subfiles/subfiles.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <string>
#include <tuple>

#include "core/base/base.hpp"
#include "core/file/file.hpp"
#include "core/hints/hints.hpp"

namespace pario::subfiles {
namespace {

using chain::None;
using symbols::Symbol;

// ---- files that consist of subfiles

/// True for the path of a file with a map of subfiles. The heap is used for such files only.
bool has_map(std::string_view path) {
  base::Text<PATH_MAX> map;
  map.add(path).add(".subfiles/map");
  return map.complete() && base::system_call(SYS_faccessat, AT_FDCWD, map.c_str(), F_OK) == 0;
}

/// True for an empty regular file. Does not ask the servers of a file system for the size.
bool is_empty(int descriptor) {
  struct statx facts;
  return base::extended_status_of(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                                  STATX_TYPE | STATX_SIZE, facts) == 0 &&
         S_ISREG(facts.stx_mode) && facts.stx_size == 0;
}

/// The facts that a program shall see of an open copy, and those of the copy itself.
struct Copy {
  struct stat own, shown;
};

/// The last copies that this process has opened.
class Copies {
 public:
  void add(const Copy& copy) {
    const base::SpinLock hold(lock_);
    copies_[added_++ % copies_.size()] = copy;
  }
  /// Replaces the facts of a copy; false: they are those of another file.
  bool find(struct stat& facts) {
    const base::SpinLock hold(lock_);
    for (std::size_t i = 0; i < std::min(added_, copies_.size()); ++i)
      if (are_same(copies_[i].own, facts)) return facts = copies_[i].shown, true;
    return false;
  }
  void unlock_in_child() { lock_ = 0; }

 private:
  /// Compares the time of creation too: another file may get the number later.
  static bool are_same(const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
           a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
  }

  std::array<Copy, 64> copies_{};
  std::size_t added_ = 0;
  std::uint64_t lock_ = 0;
};
constinit Copies copies;

/// Puts another open file in the place of a descriptor, and closes its own number.
void replace(int descriptor, int other) {
  const bool closes = (base::system_call(SYS_fcntl, descriptor, F_GETFD) & FD_CLOEXEC) != 0;
  base::system_call(SYS_dup3, other, descriptor, closes ? O_CLOEXEC : 0);
  base::close_file(other);
}

/// Opens the copy of a file; 0 or -errno. A file that has been joined meanwhile is opened again.
int open_copy(int descriptor, const base::Path& path, int flags) {
  constexpr int kKept = O_NONBLOCK | O_NOATIME;
  Copy copy;
  const std::string name(path.view());
  const base::Result<int> opened = file::open_joined_copy(name, flags & kKept);
  if (!opened.ok() && opened.error().number != ENOENT) return -opened.error().number;
  const int other = opened.ok() ? *opened : base::open_file(path.c_str(), flags);
  if (other < 0) return other;
  if (opened.ok() && base::status_of(descriptor, copy.shown) == 0 &&
      file::add_subfiles(name, copy.shown) && base::status_of(other, copy.own) == 0)
    copies.add(copy);
  replace(descriptor, other);
  return 0;
}

/// Lets a descriptor that was opened for reading have the bytes of the subfiles; 0 or -errno.
int serve(int descriptor) {
  if (descriptor < 0 || pario_in_vfork_child != 0 || base::Unbuffered::active() ||
      !is_empty(descriptor))
    return 0;
  const base::SavedErrno saved;
  const long flags = base::system_call(SYS_fcntl, descriptor, F_GETFL);
  const base::Path path(descriptor);
  if (flags < 0 || (flags & (O_ACCMODE | O_PATH)) != O_RDONLY || !path.is_known() ||
      !has_map(path.view()))
    return 0;
  return open_copy(descriptor, path, static_cast<int>(flags));
}

/// Corrects the facts of a file with a name.
void correct(int directory, const char* path, struct stat& facts) {
  if (!S_ISREG(facts.st_mode) || facts.st_size != 0 || path == nullptr ||
      pario_in_vfork_child != 0 || base::Unbuffered::active())
    return;
  const base::SavedErrno saved;
  const long file = base::system_call(SYS_openat, directory, path, O_PATH | O_CLOEXEC);
  if (file < 0) return;
  const base::Path name(static_cast<int>(file));
  base::close_file(static_cast<int>(file));
  if (name.is_known() && has_map(name.view())) file::add_subfiles(std::string(name.view()), facts);
}

/// Corrects the facts of an open file: a copy has no name.
void correct_open(struct stat& facts) {
  if (S_ISREG(facts.st_mode) && facts.st_nlink == 0 && pario_in_vfork_child == 0)
    copies.find(facts);
}

// ---- treatments

/// open and openat.
struct Open {
  static int call(auto next, auto... args) {
    const int descriptor = next(args...);
    const int error = serve(descriptor);
    if (error == 0) return descriptor;
    base::close_file(descriptor);
    return errno = -error, -1;
  }
};

/// fopen and freopen.
struct Stream {
  static std::FILE* call(auto next, auto... args) {
    std::FILE* stream = next(args...);
    const int error = stream == nullptr ? 0 : serve(stream->_fileno);
    if (error == 0) return stream;
    chain::entry<int (*)(std::FILE*), Symbol::fclose>()(stream);
    return errno = -error, nullptr;
  }
};

void correct_at(int directory, const char* path, int flags, struct stat& facts) {
  if ((flags & AT_EMPTY_PATH) != 0 && (path == nullptr || *path == 0))
    correct_open(facts);
  else
    correct(directory, path, facts);
}

/// The stat functions by name.
struct Stat : chain::OnPath {
  static int call(auto next, int directory, const char* path, void* room, auto... flags) {
    const int result = next(directory, path, room, flags...);
    if (result == 0)
      correct_at(directory, path, (flags | ... | 0), *static_cast<struct stat*>(room));
    return result;
  }
};
using OldStat = chain::Versioned<Stat>;

/// The facts of a name by which correct() decides and to which it adds.
struct stat facts_of(const struct statx& given) {
  struct stat facts{};
  facts.st_mode = given.stx_mode;
  facts.st_nlink = given.stx_nlink;
  facts.st_dev = makedev(given.stx_dev_major, given.stx_dev_minor);
  facts.st_ino = given.stx_ino;
  facts.st_size = static_cast<off_t>(given.stx_size);
  facts.st_blocks = static_cast<blkcnt_t>(given.stx_blocks);
  facts.st_mtim = {given.stx_mtime.tv_sec, given.stx_mtime.tv_nsec};
  return facts;
}

void store(const struct stat& facts, struct statx& given) {
  given.stx_nlink = static_cast<std::uint32_t>(facts.st_nlink);
  given.stx_dev_major = major(facts.st_dev);
  given.stx_dev_minor = minor(facts.st_dev);
  given.stx_ino = facts.st_ino;
  given.stx_size = static_cast<std::uint64_t>(facts.st_size);
  given.stx_blocks = static_cast<std::uint64_t>(facts.st_blocks);
  given.stx_mtime.tv_sec = facts.st_mtim.tv_sec;
  given.stx_mtime.tv_nsec = static_cast<std::uint32_t>(facts.st_mtim.tv_nsec);
}

/// statx. The program chooses the facts; type and size are the least that allow a correction.
struct Statx {
  static int call(auto next, int directory, const char* path, int flags, unsigned mask,
                  void* room) {
    const int result = next(directory, path, flags, mask, room);
    auto& given = *static_cast<struct statx*>(room);
    constexpr unsigned kNeeded = STATX_TYPE | STATX_SIZE;
    if (result != 0 || (given.stx_mask & kNeeded) != kNeeded || !S_ISREG(given.stx_mode))
      return result;
    struct stat facts = facts_of(given);
    const bool open = (flags & AT_EMPTY_PATH) != 0 && (path == nullptr || *path == 0);
    if (open && (given.stx_nlink != 0 || base::status_of(directory, facts) != 0)) return result;
    correct_at(directory, path, flags, facts);
    store(facts, given);
    return result;
  }
};

/// The stat functions of descriptors.
struct Status {
  static int call(auto next, auto... args) {
    const int result = next(args...);
    if (result == 0) correct_open(*static_cast<struct stat*>(std::get<void*>(std::tuple(args...))));
    return result;
  }
};

/// _Fork, which runs no handlers of pthread_atfork.
struct Fork {
  static pid_t call(auto next) {
    const pid_t child = next();
    if (child == 0) after_fork_in_child();
    return child;
  }
};

}  // namespace

bool is_active() { return hints::of_process().subfiles; }

void after_fork_in_child() { copies.unlock_in_child(); }

#define PARIO_THIS_LAYER subfiles
#include "layers/chain/treatment_of.def"

}  // namespace pario::subfiles
