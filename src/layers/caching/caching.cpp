#include "layers/caching/caching.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/base/base.hpp"
#include "layers/caching/ahead.hpp"
#include "layers/node_cache/node_cache.hpp"

namespace pario::caching {
namespace {

using chain::None;
using node_cache::Facts;
using node_cache::Name;
using symbols::Symbol;

/// Returns the facts of a name, of the file behind links if `follow`. `end` receives the name of
/// that file.
Facts find(const Name& name, bool follow, base::TextBuffer& end) {
  Facts facts = follow ? node_cache::find_behind_links(name, end) : node_cache::find(name);
  if (name.needs_directory() && !facts.is_missing() && !facts.is(S_IFDIR)) facts = {};
  return facts;
}

/// Answers a question about attributes by `give`, or passes it on by `pass`.
template <class Give, class Pass>
int answer(const Name& name, bool follow, Give give, Pass pass) {
  base::Text<PATH_MAX> end;
  const Facts facts = find(name, follow, end);
  if (facts.is_missing()) return errno = facts.error, -1;
  return facts.is_present() && give(facts) ? 0 : pass();
}

constexpr bool follows_links(Symbol symbol) {
  return symbol != Symbol::lstat && symbol != Symbol::lstat64 && symbol != Symbol::__lxstat &&
         symbol != Symbol::__lxstat64;
}

// ---- treatments of questions

struct Stat : chain::OnPath {
  static int call(auto next, int directory, const char* path, void* room, auto... given) {
    const int flags = (given | ... | 0);
    const auto pass = [=] { return next(directory, path, room, given...); };
    const auto give = [room](const Facts& facts) {
      std::memcpy(room, &facts.status, sizeof facts.status);
      return true;
    };
    if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) != 0) return pass();
    const bool follows = follows_links(next.kSymbol) && (flags & AT_SYMLINK_NOFOLLOW) == 0;
    return answer(Name(directory, path), follows, give, pass);
  }
};
using Versioned = chain::Versioned<Stat>;

/// statx: answered for missing names only, because the program chooses the attributes.
struct Statx {
  static int call(auto next, int directory, const char* path, int flags, unsigned mask,
                  void* room) {
    const auto nothing = [](const Facts&) { return false; };
    return answer(Name(directory, path), (flags & AT_SYMLINK_NOFOLLOW) == 0, nothing,
                  [=] { return next(directory, path, flags, mask, room); });
  }
};

/// access: the file system decides about permissions.
struct Access : chain::OnPath {
  static int call(auto next, int directory, const char* path, int mode, auto... flags) {
    const bool follows = ((flags & AT_SYMLINK_NOFOLLOW) | ... | 0) == 0;
    const auto exists = [mode](const Facts&) { return mode == F_OK; };
    return answer(Name(directory, path), follows, exists,
                  [=] { return next(directory, path, mode, flags...); });
  }
};

template <class Pass>
ssize_t give_target(const Name& name, char* room, std::size_t size, Pass pass) {
  const Facts facts = node_cache::find(name);
  if (facts.is_missing()) return errno = facts.error, -1;
  if (facts.is_present() && !facts.is(S_IFLNK) && !name.needs_directory() && size > 0)
    return errno = EINVAL, -1;
  const std::size_t copied =
      facts.is(S_IFLNK) ? node_cache::read_target(name, room, size) : std::size_t{0};
  return copied > 0 ? static_cast<ssize_t>(copied) : pass();
}

struct ReadLink : chain::OnPath {
  static ssize_t call(auto next, int directory, const char* path, char* room, std::size_t size) {
    return give_target(Name(directory, path), room, size,
                       [=] { return next(directory, path, room, size); });
  }
};

/// opendir: the listing has the names and their types.
struct List {
  static void* call(auto next, const char* path) {
    const Name name(AT_FDCWD, path);
    base::Text<PATH_MAX> listing;
    const Facts facts = node_cache::find(name);
    if (facts.is_missing()) return errno = facts.error, nullptr;
    if (facts.is(S_IFDIR) && node_cache::find_listing(name, listing))
      if (void* opened = next(listing.c_str())) return opened;
    return next(path);
  }
};

// ---- treatments of openings

/// Opens the copy that was made ahead, and removes it, or the file.
template <class Result, class Open, class Pass>
Result open_ahead(const Name& name, Result failed, Open open, Pass pass) {
  base::Text<PATH_MAX> copy;
  if (!ahead::is_active() || !ahead::find(name, copy)) return pass();
  const Result opened = open(copy.c_str());
  if (opened == failed) return pass();
  ahead::remove(copy.c_str());
  return opened;
}

/// Returns the result of opening a file to read it: `open` opens the copy, `pass` the file. Failed
/// openings return `failed`.
template <class Result, class Open, class Pass>
Result open_to_read(const Name& name, bool follow, Result failed, Open open, Pass pass) {
  base::Text<PATH_MAX> end, copy;
  if (!name.is_cached()) return open_ahead(name, failed, open, pass);
  const Facts facts = find(name, follow, end);
  if (facts.is_missing()) return errno = facts.error, failed;
  if (facts.is(S_IFREG) && node_cache::find_copy(follow ? end.view() : name.view(), facts, copy))
    if (const Result opened = open(copy.c_str()); opened != failed) return opened;
  return pass();
}

/// Notes that the job changes a name.
void announce_change(const Name& name) {
  node_cache::note_change(name);
  ahead::note_change(name);
}

/// Notes a change before a file is opened to be written, and again by its real name.
template <class Result, class Pass, class Describe>
Result open_to_write(const Name& name, Pass pass, Describe describe) {
  announce_change(name);
  const Result opened = pass();
  const base::SavedErrno saved;
  if (const int descriptor = describe(opened); descriptor >= 0) {
    const Name real(descriptor);
    if (real.view() != name.view()) announce_change(real);
  }
  return opened;
}

constexpr int kReadingFlags =
    O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_NOATIME | O_LARGEFILE;
constexpr bool is_to_read(int flags) { return (flags & ~kReadingFlags) == O_RDONLY; }
constexpr bool is_to_write(int flags) {
  return (flags & O_PATH) == 0 &&
         ((flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0 || (flags & O_TRUNC) != 0);
}

template <class OpenCopy, class Pass>
int open_file(int directory, const char* path, int flags, OpenCopy open_copy, Pass pass) {
  if (!is_to_read(flags) && !is_to_write(flags)) return pass();
  const Name name(directory, path);
  if (is_to_write(flags)) return open_to_write<int>(name, pass, [](int opened) { return opened; });
  return open_to_read(name, (flags & O_NOFOLLOW) == 0, -1, open_copy, pass);
}

/// open and openat.
struct Open : chain::OnPath {
  static int call(auto next, int directory, const char* path, int flags, auto... mode) {
    return open_file(
        directory, path, flags,
        [=](const char* copy) { return next(AT_FDCWD, copy, flags, mode...); },
        [=] { return next(directory, path, flags, mode...); });
  }
};

/// creat.
struct Create {
  static int call(auto next, const char* path, mode_t mode) {
    return open_to_write<int>(
        Name(AT_FDCWD, path), [=] { return next(path, mode); }, [](int opened) { return opened; });
  }
};

/// fopen and freopen.
struct OpenStream {
  static std::FILE* call(auto next, const char* path, const char* mode, auto... old) {
    const auto pass = [=] { return next(path, mode, old...); };
    const Name name(AT_FDCWD, path);
    const std::string_view options = std::string_view(mode).substr(0, std::strcspn(mode, ","));
    if (!options.starts_with('r') || options.find('+') != options.npos)
      return open_to_write<std::FILE*>(
          name, pass, [](std::FILE* opened) { return opened == nullptr ? -1 : ::fileno(opened); });
    // freopen closes its stream even if it fails, so that it is called once.
    if constexpr (sizeof...(old) > 0) return pass();
    return open_to_read<std::FILE*>(
        name, true, nullptr, [=](const char* copy) { return next(copy, mode, old...); }, pass);
  }
};

/// mkstemp and its variants, whose names the C library completes.
struct Temporary {
  static int call(auto next, char* path, auto... numbers) {
    const Name pattern(AT_FDCWD, path);
    return open_to_write<int>(
        pattern, [=] { return next(path, numbers...); }, [](int opened) { return opened; });
  }
};

// ---- treatments of other changes

/// Calls that change one name.
struct Change : chain::OnPath {
  static auto call(auto next, int directory, const char* path, auto... args) {
    announce_change(Name(directory, path));
    return next(directory, path, args...);
  }
};

/// symlink and symlinkat: the first argument is the target.
struct ChangeTarget {
  static int call(auto next, const char* target, const char* path) {
    announce_change(Name(AT_FDCWD, path));
    return next(target, path);
  }
  static int call(auto next, const char* target, int directory, const char* path) {
    announce_change(Name(directory, path));
    return next(target, directory, path);
  }
};

void note_both(const Name& old_name, const Name& new_name) {
  node_cache::note_change_of_tree(old_name);
  node_cache::note_change_of_tree(new_name);
  announce_change(old_name);
  announce_change(new_name);
}

/// rename, link and their variants.
struct ChangeBoth {
  static int call(auto next, const char* path, const char* target) {
    note_both(Name(AT_FDCWD, path), Name(AT_FDCWD, target));
    return next(path, target);
  }
  static int call(auto next, int from, const char* path, int to, const char* target,
                  auto... flags) {
    note_both(Name(from, path), Name(to, target));
    return next(from, path, to, target, flags...);
  }
};

}  // namespace

bool is_active() { return node_cache::is_open(); }

int read_status(const char* path, struct stat& status) {
  base::Text<PATH_MAX> end;
  const Facts facts = find(Name(AT_FDCWD, path), true, end);
  if (facts.is_missing()) return facts.error;
  if (facts.is_present()) status = facts.status;
  return facts.is_present() ? 0 : -1;
}

void read_ahead(std::string_view names) { ahead::add(names); }

#define PARIO_THIS_LAYER caching
#include "layers/chain/treatment_of.def"

}  // namespace pario::caching
