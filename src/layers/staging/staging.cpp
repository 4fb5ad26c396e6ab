#include "layers/staging/staging.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/base/base.hpp"
#include "core/hints/hints.hpp"

namespace pario::staging {
namespace {

using chain::None;
using symbols::Symbol;

struct Stage {
  std::string_view directory, local;
};

/// The kind of the file of a name; symbolic links are not followed.
struct FileKind {
  bool exists = false, directory = false, link = false;
};

FileKind kind_of(const char* path) {
  struct stat status;
  const bool exists = base::status_of(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, status) == 0;
  return {exists, exists && S_ISDIR(status.st_mode), exists && S_ISLNK(status.st_mode)};
}

/// The stages of PARIO_STAGE, "DIRECTORY=LOCAL:DIRECTORY=LOCAL". Local directories that do not
/// exist are left out: `pario run` creates them on the nodes from which it copies files back.
class Stages {
 public:
  Stages() {
    for (std::string_view rest = hints::of_process().stage.view();
         !rest.empty() && count_ < kMost;) {
      std::string_view local_directory = base::cut(rest, ':');
      const std::string_view directory = base::cut(local_directory, '=');
      const Stage stage = {directory, local_directory};
      base::Text<PATH_MAX> local;
      if (kind_of(local.add(stage.local).c_str()).directory) stages_[count_++] = stage;
    }
  }
  bool empty() const { return count_ == 0; }
  /// The stage whose directory holds a file; null: none.
  const Stage* find(std::string_view path) const {
    const auto* end = stages_ + count_;
    const auto* found = std::find_if(stages_, end, [path](const Stage& stage) {
      return path.starts_with(stage.directory) && path.size() > stage.directory.size() &&
             path[stage.directory.size()] == '/';
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

/// The effect of a call on a name.
enum class Use {
  existing,  ///< uses an existing file
  update,    ///< creates the file unless it exists
  replace,   ///< creates the file, or removes its bytes
  create,    ///< creates the file, which must not exist
  receive,   ///< replaces the file by a local one
};

/// A name that a program uses, and its replacement.
class StagedPath {
 public:
  StagedPath(int directory, const char* path) : directory_(directory), path_(path) {
    if (path == nullptr || *path == '\0' || stages().empty()) return;
    const base::Path whole(directory, path);
    stage_ = whole.is_known() ? stages().find(whole.view()) : nullptr;
    if (stage_ == nullptr) return;
    real_.add(whole.view());
    local_.add(stage_->local).add(whole.view().substr(stage_->directory.size()));
    if (!local_.complete()) stage_ = nullptr;
  }
  StagedPath(int directory, const char* path, Use use) : StagedPath(directory, path) {
    choose(use);
  }

  /// Chooses between the real and the local name; creates the parents of a new local file.
  void choose(Use use) { is_local_ = stage_ != nullptr && is_for_local(use); }
  bool is_staged() const { return stage_ != nullptr; }
  bool is_local() const { return is_local_; }
  /// True for a real directory with files in the local one: a rename would not move these.
  bool is_divided() { return is_staged() && !is_local_ && local_kind().exists; }
  int directory() const { return is_local_ ? AT_FDCWD : directory_; }
  const char* path() { return is_local_ ? local_.c_str() : path_; }
  const char* local() { return local_.c_str(); }
  FileKind local_kind() { return kind_of(local_.c_str()); }
  FileKind real_kind() { return kind_of(real_.c_str()); }

 private:
  bool is_for_local(Use use) {
    const base::SavedErrno saved;
    const FileKind local = local_kind(), real = real_kind();
    switch (use) {
      case Use::existing:
        return local.exists && !(local.directory && real.exists);
      case Use::update:
      case Use::create:
        return local.exists || (!real.exists && make_parents());
      case Use::replace:  // the target of a link is elsewhere
        return local.exists || (!real.directory && !real.link && make_parents());
      case Use::receive:
        return make_parents();
    }
    return false;
  }

  /// Creates the directories above the local name if they exist in the real directory.
  bool make_parents() {
    char* const local = const_cast<char*>(local_.c_str());
    for (char* slash = std::strchr(local + stage_->local.size() + 1, '/'); slash != nullptr;
         slash = std::strchr(slash + 1, '/')) {
      *slash = '\0';
      const bool exists = kind_of(local).directory || make_directory_as_real(local);
      *slash = '/';
      if (!exists) return false;
    }
    return true;
  }

  /// Creates a local directory with the permissions of the real one.
  bool make_directory_as_real(const char* local) {
    base::Text<PATH_MAX> real;
    real.add(stage_->directory).add(local + stage_->local.size());
    struct stat status{};
    if (base::status_of(real.c_str(), status) != 0 || !S_ISDIR(status.st_mode)) return false;
    const long result =
        base::system_call(SYS_mkdirat, AT_FDCWD, local, (status.st_mode & 0777) | 0700);
    return result == 0 || result == -EEXIST;
  }

  int directory_;
  const char* path_;
  const Stage* stage_ = nullptr;
  bool is_local_ = false;
  base::Text<PATH_MAX> real_, local_;
};

// ---- treatments

template <Use use>
struct Named : chain::OnPath {
  static auto call(auto next, int directory, const char* path, auto... args) {
    StagedPath staged(directory, path, use);
    return next(staged.directory(), staged.path(), args...);
  }
};
/// A call on an existing file, by name.
using Existing = Named<Use::existing>;
using Versioned = chain::Versioned<Existing>;
/// A call that creates a file, and fails if it exists.
using Create = Named<Use::create>;
/// A call that creates or truncates a file.
using Replace = Named<Use::replace>;

Use use_of(int flags) {
  const bool nameless = (flags & O_TMPFILE & ~O_DIRECTORY) != 0;
  if (!nameless && (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return Use::create;
  if (!nameless && (flags & O_CREAT) != 0)
    return (flags & O_TRUNC) != 0 ? Use::replace : Use::update;
  return Use::existing;
}

/// open and openat.
struct Open : chain::OnPath {
  static int call(auto next, int directory, const char* path, int flags, auto... mode) {
    StagedPath staged(directory, path, use_of(flags));
    return next(staged.directory(), staged.path(), flags, mode...);
  }
};

Use use_of(const char* mode) {
  const std::string_view text = mode;
  if (text.starts_with('r')) return Use::existing;
  if (text.substr(0, text.find(',')).find('x') != text.npos) return Use::create;
  return text.starts_with('w') ? Use::replace : Use::update;
}

/// fopen and freopen.
struct OpenStream {
  static std::FILE* call(auto next, const char* path, const char* mode, auto... old) {
    StagedPath staged(AT_FDCWD, path, use_of(mode));
    return next(staged.path(), mode, old...);
  }
};

/// mkstemp and its variants. The C library chooses letters in the last component of the name: they
/// are copied from the local name to the program's.
struct Temporary {
  static int call(auto next, char* path, auto... numbers) {
    StagedPath staged(AT_FDCWD, path, Use::create);
    if (!staged.is_local()) return next(path, numbers...);
    const std::string_view whole = path;
    const std::size_t last = whole.size() - (whole.rfind('/') + 1);
    char* const local = const_cast<char*>(staged.local());
    const int result = next(local, numbers...);
    std::memcpy(path + whole.size() - last, local + std::strlen(local) - last, last);
    return result;
  }
};

/// symlink and symlinkat: the target stays as it is.
struct Link {
  static int call(auto next, const char* target, const char* path) {
    StagedPath staged(AT_FDCWD, path, Use::create);
    return next(target, staged.path());
  }
  static int call(auto next, const char* target, int directory, const char* path) {
    StagedPath staged(directory, path, Use::create);
    return next(target, staged.directory(), staged.path());
  }
};

/// Removes a file in the real and in the local directory.
template <class RemoveFile>
int remove_both(int directory, const char* path, RemoveFile remove) {
  StagedPath staged(directory, path);
  if (!staged.is_staged() || !staged.local_kind().exists) return remove(directory, path);
  if (staged.real_kind().exists && remove(directory, path) != 0) return -1;
  return remove(AT_FDCWD, staged.local());
}

/// unlink, unlinkat, remove and rmdir.
struct Remove : chain::OnPath {
  static int call(auto next, int directory, const char* path, auto... flags) {
    return remove_both(directory, path,
                       [=](int at, const char* name) { return next(at, name, flags...); });
  }
};

void remove_file(int directory, const char* path) {
  base::system_call(SYS_unlinkat, directory, path, 0);
}

/// Renames a file, or links it (`links`): the new name is in the same directory (real or local) as
/// the old one. `exclusive`: the new name must not exist.
template <class Call>
int rename_or_link(int from, const char* path, int to, const char* target, bool links,
                   bool exclusive, Call call) {
  StagedPath source(from, path, Use::existing), goal(to, target);
  if (!links && source.is_divided()) {
    errno = EXDEV;
    return -1;
  }
  if (source.is_local()) goal.choose(exclusive ? Use::create : Use::receive);
  const int result = call(source.directory(), source.path(), goal.directory(), goal.path());
  if (result != 0 || links) return result;
  const base::SavedErrno saved;
  // Removes the hidden real file, too; the local file of the new name has been replaced.
  if (source.is_local()) remove_file(from, path);
  if (goal.is_staged() && !goal.is_local()) remove_file(AT_FDCWD, goal.local());
  return result;
}

constexpr bool makes_link(Symbol symbol) {
  return symbol == Symbol::link || symbol == Symbol::linkat;
}

/// rename, link and their variants.
struct Rename {
  static int call(auto next, const char* path, const char* target) {
    constexpr bool kLinks = makes_link(next.kSymbol);
    return rename_or_link(AT_FDCWD, path, AT_FDCWD, target, kLinks, kLinks,
                          [=](int, const char* old_name, int, const char* new_name) {
                            return next(old_name, new_name);
                          });
  }
  static int call(auto next, int from, const char* path, int to, const char* target,
                  auto... flags) {
    constexpr bool kLinks = makes_link(next.kSymbol);
    const bool exclusive =
        kLinks || ((static_cast<unsigned>(flags) | ... | 0U) & RENAME_NOREPLACE) != 0;
    return rename_or_link(from, path, to, target, kLinks, exclusive,
                          [=](int a, const char* old_name, int b, const char* new_name) {
                            return next(a, old_name, b, new_name, flags...);
                          });
  }
};

}  // namespace

bool is_active() { return !stages().empty(); }

#define PARIO_THIS_LAYER staging
#include "layers/chain/treatment_of.def"

}  // namespace pario::staging
