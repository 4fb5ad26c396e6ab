// Wrappers of calls that visit the names of directory trees. The C library reads the directories
// and asks for the names by functions of its own, between calls of the program's function. Each
// name is counted as an entry of its directory, each directory as listed.
#include <ftw.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <string_view>
#include <utility>

#include "observe/preload/calls.hpp"

using namespace pario::preload;
namespace trace = pario::trace;

namespace {

/// The path of the directory that holds a name, ending with a zero; empty for names that are too
/// long.
class DirectoryOf {
 public:
  explicit DirectoryOf(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    size_ = slash == path.npos ? 0 : std::max<std::size_t>(slash, 1);
    if (size_ == 0) path = ".", size_ = 1;
    if (size_ >= sizeof text_) size_ = 0;
    path.copy(text_, size_);
    text_[size_] = '\0';
  }
  const char* text() const { return text_; }

 private:
  char text_[PATH_MAX];
  std::size_t size_;
};

/// A walk of this thread: the program's function, and the end of its last call.
template <class... Place>
class Walk {
 public:
  using Visit = int (*)(const char*, const struct stat*, int, Place...);

  Walk(Symbol symbol, Visit visit)
      : outer_(std::exchange(current_, this)), symbol_(symbol), visit_(visit) {}
  ~Walk() { current_ = outer_; }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  /// Counts the work of the C library for a name, and calls the program's function.
  static int visit(const char* path, const struct stat* status, int type, Place... place) {
    Walk& walk = *current_;
    const Span span{walk.since_, trace::ticks()};
    if (active()) in_tracer([&] { walk.count(path, type, span); });
    const int result = walk.visit_(path, status, type, place...);
    walk.since_ = trace::ticks();
    return result;
  }

 private:
  void count(const char* path, int type, Span span) const {
    const bool listed = type == FTW_D || type == FTW_DP;
    if (listed) return count_path(symbol_, AT_FDCWD, path, span, false);
    const DirectoryOf directory(path);
    count_row(Symbol::walked_name, record_of(trace::Layer::posix, AT_FDCWD, directory.text(), -1),
              span, false, trace::kUnknownOffset, 1);
  }

  static inline constinit thread_local Walk* current_ [[gnu::tls_model("initial-exec")]] = nullptr;
  Walk* outer_;  ///< a walk of the program's function
  Symbol symbol_;
  Visit visit_;
  std::uint64_t since_ = trace::ticks();
};

/// Counts a call that lists the directory of a pattern.
void count_glob(Symbol symbol, std::string_view pattern, Span span, int status,
                const glob_t& found) {
  const DirectoryOf directory(pattern.substr(0, pattern.find_first_of("*?[{~")));
  trace::Record* record = record_of(trace::Layer::posix, AT_FDCWD, directory.text(), -1);
  count_row(symbol, record, span, status != 0 && status != GLOB_NOMATCH);
  if (status == 0)
    count_row(Symbol::walked_name, record, {span.end, span.end}, false, trace::kUnknownOffset,
              found.gl_pathc);
}

using NewWalk = Walk<FTW*>;
using OldWalk = Walk<>;

}  // namespace

#define FTW(name)                                                                  \
  PARIO_WRAP(int, name, const char* path, OldWalk::Visit visit, int descriptors) { \
    if (!active()) return PARIO_REAL(name)(path, visit, descriptors);              \
    const OldWalk walk(Symbol::name, visit);                                       \
    return PARIO_REAL(name)(path, OldWalk::visit, descriptors);                    \
  }
FTW(ftw)
FTW(ftw64)

#define NFTW(name)                                                                            \
  PARIO_WRAP(int, name, const char* path, NewWalk::Visit visit, int descriptors, int flags) { \
    if (!active()) return PARIO_REAL(name)(path, visit, descriptors, flags);                  \
    const NewWalk walk(Symbol::name, visit);                                                  \
    return PARIO_REAL(name)(path, NewWalk::visit, descriptors, flags);                        \
  }
NFTW(nftw)
NFTW(nftw64)

// Not counted: the calls that read the directories are fts_read.
#define FTS(name)                                                           \
  PARIO_WRAP(void*, name, char* const* paths, int options, void* compare) { \
    return PARIO_REAL(name)(paths, options, compare);                       \
  }
FTS(fts_open)
FTS(fts64_open)

// The names that match count as entries of the directory before the first special character.
using Report = int (*)(const char*, int);
#define GLOB(name)                                                                                \
  PARIO_WRAP(int, name, const char* pattern, int flags, Report report, glob_t* found) {           \
    if (!active()) return PARIO_REAL(name)(pattern, flags, report, found);                        \
    return count_call(                                                                            \
        start_on_path(Symbol::name, pattern),                                                     \
        [&] { return PARIO_REAL(name)(pattern, flags, report, found); },                          \
        [&](Span span, int status) { count_glob(Symbol::name, pattern, span, status, *found); }); \
  }
GLOB(glob)
GLOB(glob64)
