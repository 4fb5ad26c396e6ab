// The real directory stays as it is until `pario run` brings the files there: what is only in the local one is new, or stands before the
// real one of its name. A file that is there already is read, and changed, where it is, unless it is replaced as a whole.
#include "preload/staged.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/base.hpp"
#include "hints/hints.hpp"
#include "preload/stand_ins.hpp"

namespace pario::preload::staged {
namespace {

constinit StandIns stand_ins;

struct Stage {
  std::string_view directory, local;
};

/// A directory, or what a name stands for, without following links.
struct Found {
  bool there = false, directory = false, link = false;
};

Found look(const char* path) {
  struct stat facts{};
  const bool there = base::system_call(SYS_newfstatat, AT_FDCWD, path, &facts, AT_SYMLINK_NOFOLLOW) == 0;
  return {there, there && S_ISDIR(facts.st_mode), there && S_ISLNK(facts.st_mode)};
}

/// "DIRECTORY=LOCAL:DIRECTORY=LOCAL", as long as the local ones are there: `pario run` has made them on the nodes where it will bring back
/// what they hold.
class Stages {
 public:
  Stages() {
    static hints::HintSet found = hints::defaults();
    hints::read_environment(found, environ, [](std::string_view) {});
    for (std::string_view rest = found.stage.view(); !rest.empty() && count_ < kMost;) {
      const std::string_view pair = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
      const std::size_t equals = std::min(pair.find('='), pair.size());
      const Stage stage = {pair.substr(0, equals), pair.substr(std::min(equals + 1, pair.size()))};
      base::Text<PATH_MAX> local;
      if (look(local.add(stage.local).c_str()).directory) stages_[count_++] = stage;
    }
  }
  bool empty() const { return count_ == 0; }
  /// The one that a file is beneath; null: none.
  const Stage* of(std::string_view path) const {
    const auto* end = stages_ + count_;
    const auto* found = std::find_if(stages_, end, [path](const Stage& stage) {
      return path.starts_with(stage.directory) && path.size() > stage.directory.size() && path[stage.directory.size()] == '/';
    });
    return found == end ? nullptr : found;
  }

 private:
  static constexpr std::size_t kMost = 16;
  Stage stages_[kMost];
  std::size_t count_ = 0;
};

const Stages& stages() {
  static const Stages found;
  return found;
}

/// What a call does with a name.
enum class Use {
  see,      ///< it is there
  update,   ///< it is made unless it is there
  replace,  ///< it is made, or its bytes go
  make,     ///< it must not be there
  receive,  ///< it is replaced by a local one
};

/// A name that a program has used, and where that is.
class Place {
 public:
  Place(int directory, const char* path) : directory_(directory), path_(path) {
    if (path == nullptr || *path == '\0' || stages().empty()) return;
    const base::Path whole(directory, path);
    stage_ = whole.known() ? stages().of(whole.view()) : nullptr;
    if (stage_ == nullptr) return;
    real_.add(whole.view());
    local_.add(stage_->local).add(whole.view().substr(stage_->directory.size()));
    if (!local_.complete()) stage_ = nullptr;
  }
  Place(int directory, const char* path, Use use) : Place(directory, path) { choose(use); }

  void choose(Use use) { is_local_ = stage_ != nullptr && is_for_local(use); }
  bool is_staged() const { return stage_ != nullptr; }
  bool is_local() const { return is_local_; }
  /// An old directory with new files: they would not come along.
  bool is_divided() { return is_staged() && !is_local_ && found_local().there; }
  int directory() const { return is_local_ ? AT_FDCWD : directory_; }
  const char* path() { return is_local_ ? local_.c_str() : path_; }
  const char* local() { return local_.c_str(); }
  Found found_local() { return look(local_.c_str()); }
  Found found_real() { return look(real_.c_str()); }

 private:
  bool is_for_local(Use use) {
    const base::SavedErrno saved;
    const Found local = found_local(), real = found_real();
    switch (use) {
      case Use::see:
        return local.there && !(local.directory && real.there);
      case Use::update:
      case Use::make:
        return local.there || (!real.there && make_parents());
      case Use::replace:
        return local.there || (!real.directory && !real.link && make_parents());  // what a link names is elsewhere
      case Use::receive:
        return make_parents();
    }
    return false;
  }

  /// The directories above the local name, where they are in the real directory.
  bool make_parents() {
    char* const local = const_cast<char*>(local_.c_str());
    for (char* slash = std::strchr(local + stage_->local.size() + 1, '/'); slash != nullptr; slash = std::strchr(slash + 1, '/')) {
      *slash = '\0';
      const bool there = look(local).directory || (make_as_real(local));
      *slash = '/';
      if (!there) return false;
    }
    return true;
  }

  bool make_as_real(const char* local) {
    base::Text<PATH_MAX> real;
    real.add(stage_->directory).add(local + stage_->local.size());
    struct stat facts{};
    if (base::status_of(real.c_str(), facts) != 0 || !S_ISDIR(facts.st_mode)) return false;
    const long made = base::system_call(SYS_mkdirat, AT_FDCWD, local, (facts.st_mode & 0777) | 0700);
    return made == 0 || made == -EEXIST;
  }

  int directory_;
  const char* path_;
  const Stage* stage_ = nullptr;
  bool is_local_ = false;
  base::Text<PATH_MAX> real_, local_;
};

template <Symbol symbol, class Result, class... Args>
Result next(Args... args) {
  return stand_ins.next<symbol, Result>(args...);
}

// ---- treatments

template <Symbol, Use, class>
struct Named;
template <Symbol symbol, Use use, class Result, class... Args>
struct Named<symbol, use, Result(const char*, Args...)> {
  static Result call(const char* path, Args... args) {
    Place place(AT_FDCWD, path, use);
    return next<symbol, Result>(place.path(), args...);
  }
};
template <Symbol symbol, Use use, class Result, class... Args>
struct Named<symbol, use, Result(int, const char*, Args...)> {
  static Result call(int directory, const char* path, Args... args) {
    Place place(directory, path, use);
    return next<symbol, Result>(place.directory(), place.path(), args...);
  }
};
template <Symbol symbol, class Function>
using Seeing = Named<symbol, Use::see, Function>;
template <Symbol symbol, class Function>
using SeeingAt = Named<symbol, Use::see, Function>;
template <Symbol symbol, class Function>
using Making = Named<symbol, Use::make, Function>;
template <Symbol symbol, class Function>
using MakingAt = Named<symbol, Use::make, Function>;
template <Symbol symbol, class Function>
using Replacing = Named<symbol, Use::replace, Function>;

template <Symbol, class>
struct SeeingSecond;
/// The first argument is a version.
template <Symbol symbol, class... Args>
struct SeeingSecond<symbol, int(int, const char*, Args...)> {
  static int call(int version, const char* path, Args... args) {
    Place place(AT_FDCWD, path, Use::see);
    return next<symbol, int>(version, place.path(), args...);
  }
};
template <Symbol symbol, class... Args>
struct SeeingSecond<symbol, int(int, int, const char*, Args...)> {
  static int call(int version, int directory, const char* path, Args... args) {
    Place place(directory, path, Use::see);
    return next<symbol, int>(version, place.directory(), place.path(), args...);
  }
};

Use use_of(int flags) {
  const bool nameless = (flags & O_TMPFILE & ~O_DIRECTORY) != 0;
  if (!nameless && (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return Use::make;
  if (!nameless && (flags & O_CREAT) != 0) return (flags & O_TRUNC) != 0 ? Use::replace : Use::update;
  return Use::see;
}

template <Symbol, class>
struct Opening;
template <Symbol symbol, class... Mode>
struct Opening<symbol, int(const char*, int, Mode...)> {
  static int call(const char* path, int flags, Mode... mode) {
    Place place(AT_FDCWD, path, use_of(flags));
    return next<symbol, int>(place.path(), flags, mode...);
  }
};
template <Symbol, class>
struct OpeningAt;
template <Symbol symbol, class... Mode>
struct OpeningAt<symbol, int(int, const char*, int, Mode...)> {
  static int call(int directory, const char* path, int flags, Mode... mode) {
    Place place(directory, path, use_of(flags));
    return next<symbol, int>(place.directory(), place.path(), flags, mode...);
  }
};

Use use_of(const char* mode) {
  const std::string_view text = mode;
  if (text.starts_with('r')) return Use::see;
  if (text.substr(0, text.find(',')).find('x') != text.npos) return Use::make;
  return text.starts_with('w') ? Use::replace : Use::update;
}

template <Symbol, class>
struct OpeningStream;
template <Symbol symbol, class... Old>
struct OpeningStream<symbol, std::FILE*(const char*, const char*, Old...)> {
  static std::FILE* call(const char* path, const char* mode, Old... old) {
    Place place(AT_FDCWD, path, use_of(mode));
    return next<symbol, std::FILE*>(place.path(), mode, old...);
  }
};

template <Symbol, class>
struct Naming;
/// The letters that the C library chooses are in the last part of the name.
template <Symbol symbol, class... Numbers>
struct Naming<symbol, int(char*, Numbers...)> {
  static int call(char* path, Numbers... numbers) {
    Place place(AT_FDCWD, path, Use::make);
    if (!place.is_local()) return next<symbol, int>(path, numbers...);
    const std::string_view whole = path;
    const std::size_t last = whole.size() - (whole.rfind('/') + 1);
    char* const local = const_cast<char*>(place.local());
    const int result = next<symbol, int>(local, numbers...);
    std::memcpy(path + whole.size() - last, local + std::strlen(local) - last, last);
    return result;
  }
};

template <Symbol, class>
struct Linking;
template <Symbol symbol>
struct Linking<symbol, int(const char*, const char*)> {
  static int call(const char* target, const char* path) {
    Place place(AT_FDCWD, path, Use::make);
    return next<symbol, int>(target, place.path());
  }
};
template <Symbol symbol>
struct Linking<symbol, int(const char*, int, const char*)> {
  static int call(const char* target, int directory, const char* path) {
    Place place(directory, path, Use::make);
    return next<symbol, int>(target, place.directory(), place.path());
  }
};

/// Of a file that is here and there both go.
template <class Remove>
int remove_both(int directory, const char* path, Remove remove) {
  Place place(directory, path);
  if (!place.is_staged() || !place.found_local().there) return remove(directory, path);
  if (place.found_real().there && remove(directory, path) != 0) return -1;
  return remove(AT_FDCWD, place.local());
}

template <Symbol, class>
struct Removing;
template <Symbol symbol>
struct Removing<symbol, int(const char*)> {
  static int call(const char* path) {
    return remove_both(AT_FDCWD, path, [](int, const char* name) { return next<symbol, int>(name); });
  }
};
template <Symbol symbol>
struct Removing<symbol, int(int, const char*, int)> {
  static int call(int directory, const char* path, int flags) {
    return remove_both(directory, path, [flags](int at, const char* name) { return next<symbol, int>(at, name, flags); });
  }
};

void remove_file(int directory, const char* path) { base::system_call(SYS_unlinkat, directory, path, 0); }

/// A rename, or (`links`) a second name: the new one is where the old one is. `exclusive`: there must be none of this name.
template <class Move>
int move(int from, const char* path, int to, const char* target, bool links, bool exclusive, Move call) {
  Place source(from, path, Use::see), goal(to, target);
  if (!links && source.is_divided()) {
    errno = EXDEV;
    return -1;
  }
  if (source.is_local()) goal.choose(exclusive ? Use::make : Use::receive);
  const int result = call(source.directory(), source.path(), goal.directory(), goal.path());
  if (result != 0 || links) return result;
  const base::SavedErrno saved;
  if (source.is_local()) remove_file(from, path);                                 // the real one of its name was renamed, too
  if (goal.is_staged() && !goal.is_local()) remove_file(AT_FDCWD, goal.local());  // it was replaced
  return result;
}

constexpr bool makes_link(Symbol symbol) { return symbol == Symbol::link || symbol == Symbol::linkat; }

template <Symbol, class>
struct Moving;
template <Symbol symbol>
struct Moving<symbol, int(const char*, const char*)> {
  static int call(const char* path, const char* target) {
    constexpr bool kLinks = makes_link(symbol);
    return move(AT_FDCWD, path, AT_FDCWD, target, kLinks, kLinks,
                [](int, const char* old_name, int, const char* new_name) { return next<symbol, int>(old_name, new_name); });
  }
};
template <Symbol symbol, class... Flags>
struct Moving<symbol, int(int, const char*, int, const char*, Flags...)> {
  static int call(int from, const char* path, int to, const char* target, Flags... flags) {
    constexpr bool kLinks = makes_link(symbol);
    const bool exclusive = kLinks || ((static_cast<unsigned>(flags) | ... | 0U) & RENAME_NOREPLACE) != 0;
    return move(from, path, to, target, kLinks, exclusive, [flags...](int a, const char* old_name, int b, const char* new_name) {
      return next<symbol, int>(a, old_name, b, new_name, flags...);
    });
  }
};

void* treatment_of(Symbol symbol) {
  switch (symbol) {
#define PARIO_STAGED(name, treatment, ...) \
  case Symbol::name:                       \
    return reinterpret_cast<void*>(&treatment<Symbol::name, __VA_ARGS__>::call);
#include "preload/staged.def"
#undef PARIO_STAGED
    default:
      return nullptr;
  }
}

}  // namespace

void* stand_in(Symbol symbol, void* function) {
  void* instead = treatment_of(symbol);
  if (instead == nullptr || stages().empty()) return function;
  return stand_ins.put(symbol, instead, function);
}

}  // namespace pario::preload::staged
