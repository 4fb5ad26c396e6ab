#include "layers/striping/striping.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <optional>

#include "core/base/base.hpp"
#include "core/file/new_file.hpp"
#include "core/hints/hints.hpp"
#include "core/trace/trace.hpp"

namespace pario::striping {
namespace {

using chain::None;
using symbols::Symbol;

constexpr std::string_view kVariable = "PARIO_HINTS=";
constexpr int kMostNotes = 1000;  // of a process, so that many files do not fill its log
constexpr unsigned kStreamMode = 0666;

constinit std::atomic<int> notes{0};

/// Copies the specifications, because programs may overwrite their environment. Empty if no setting
/// concerns stripes.
std::string_view read_specifications() {
  for (char* const* variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    std::string_view text = *variable;
    if (!text.starts_with(kVariable) || !hints::name_striping(text)) continue;
    text.remove_prefix(kVariable.size());
    std::byte* memory = base::map_memory(text.size());
    if (memory == nullptr) return {};
    std::memcpy(memory, text.data(), text.size());
    return {reinterpret_cast<const char*>(memory), text.size()};
  }
  return {};
}

std::string_view specifications() {
  static const std::string_view found = read_specifications();
  return found;
}

/// The values of one hint as numbers, a flag as 0 or 1.
struct Outcome {
  std::uint64_t requested, applied, effective, initial;
};

/// Adds a row for a hint that is set or applied; skips values at the default.
void add_row(base::Json& json, const char* key, const Outcome& outcome, std::string_view reason) {
  if (outcome.requested == outcome.initial && outcome.applied == outcome.initial) return;
  const auto add = [&](const char* member, std::uint64_t value) {
    base::Text<32> text;
    if (value != outcome.initial) text.add(value);
    json.member(member, text.view());
  };
  json.begin_object().member("key", key);
  add("requested", outcome.requested);
  add("applied", outcome.applied);
  add("effective", outcome.effective);
  json.member("reason", reason).end_object();
}

hints::StripingHints applied_hints(const hints::StripingHints& asked, const file::NewFile& file) {
  hints::StripingHints hints = asked;
  const layout::Striping& wanted = file.requested_striping();
  hints.striping_factor = wanted.targets;
  hints.striping_unit = wanted.unit;
  if (wanted.start >= 0) hints.start_iodevice = static_cast<std::uint64_t>(wanted.start);
  hints.pario_expected_size = file.expected_size();
  return hints;
}

/// The hints in force: `applied`, without those that the new file did not get.
hints::StripingHints effective_hints(const hints::StripingHints& applied, const file::NewFile& file,
                                     bool differs) {
  const hints::StripingHints initial = hints::default_striping_hints();
  const layout::Kind kind = differs ? layout::Kind::unknown : file.kind();
  hints::StripingHints hints = file::effective_hints(applied, kind, file.effective());
  if (file.requested_striping() == layout::Striping{}) hints.pario_growing = initial.pario_growing;
  return hints;
}

/// Adds a row for each hint of striping_hints.def. `reason`: the reason why the stripes of the file
/// differ from the requested ones.
void add_rows(base::Json& json, const hints::StripingHints& asked, const file::NewFile& file,
              std::string_view reason) {
  const hints::StripingHints initial = hints::default_striping_hints(),
                             applied = applied_hints(asked, file),
                             effective = effective_hints(applied, file, !reason.empty());
  const auto reason_of = [&](hints::When when, const Outcome& outcome) -> std::string_view {
    if (when == hints::When::striping || outcome.effective != outcome.applied) return reason;
    return outcome.applied == outcome.requested ? "" : "as earlier files of its name";
  };
#define PARIO_FILE_HINT(key, kind, initially, least, most, aliases, when, meaning) \
  {                                                                                \
    const Outcome outcome{asked.key, applied.key, effective.key, initial.key};     \
    add_row(json, #key, outcome, reason_of(hints::When::when, outcome));           \
  }
#include "core/hints/striping_hints.def"
#undef PARIO_FILE_HINT
}

/// Notes the requested and the effective stripes of a new file in the log.
void log_outcome(std::string_view path, int descriptor, const hints::StripingHints& requested,
                 const file::NewFile& file) {
  if (!trace::on() || notes.fetch_add(1, std::memory_order_relaxed) >= kMostNotes) return;
  const trace::Record* record = chain::find_record(trace::Layer::posix, path, descriptor);
  base::Text<256> reason;
  file.add_reason(reason);
  base::Text<6000> text;
  base::Json json(text);
  json.begin_object().member("note", "striping").member("path", path);
  if (record != nullptr) json.member("record", trace::index_of(record));
  json.key("hints").begin_array();
  add_rows(json, requested, file, reason.view());
  json.end_array().end_object();
  if (text.complete()) trace::note(json.view());
}

/// Reads the hints of a path; false: no setting concerns it.
bool find_hints(std::string_view path, hints::StripingHints& hints) {
  return hints::striping_hints_of(specifications(), path, hints);
}

int descriptor_of(int opened) { return opened; }
int descriptor_of(const std::FILE* opened) { return opened == nullptr ? -1 : opened->_fileno; }

/// Fails an open with O_EXCL whose new file another process has replaced.
int refuse(int descriptor) {
  base::close_file(descriptor);
  errno = EEXIST;
  return -1;
}
std::FILE* refuse(std::FILE* stream) { return stream; }  // modes with an x are rare

/// Performs an open call that may create its file: `open(true)` if the file has just been created
/// for it.
template <class OpenFile>
auto create_and_open(int directory, const char* path, unsigned mode, OpenFile open,
                     bool exclusive = false) {
  hints::StripingHints hints;
  const base::Path name(directory, path);
  if (path == nullptr || pario_in_vfork_child != 0 || !name.is_known() ||
      !find_hints(name.view(), hints))
    return open(false);
  file::NewFile file(directory, path, mode, hints, 1, exclusive);
  const auto result = open(file.has_created());
  const int descriptor = descriptor_of(result);
  if (descriptor >= 0 && exclusive && file.has_created() && !file.is(descriptor))
    return refuse(result);
  const base::SavedErrno saved;
  if (descriptor < 0)
    file.remove();
  else
    log_outcome(name.view(), descriptor, hints, file);
  return result;
}

constexpr unsigned kTemporaryMode = 0600;

/// The six X before the suffix of a path, replaced by random letters. The destructor restores the
/// X, unless keep() was called.
class TemporaryName {
 public:
  TemporaryName(char* path, std::size_t suffix) {
    const std::string_view whole(path);
    if (whole.size() < kLetters + suffix ||
        whole.substr(whole.size() - suffix - kLetters, kLetters) != kTemplate)
      return;
    letters_ = path + whole.size() - suffix - kLetters;
  }
  ~TemporaryName() {
    if (letters_ != nullptr) std::memcpy(letters_, kTemplate, kLetters);
  }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  /// Chooses random letters; false if the path has no such X.
  bool choose() {
    constexpr std::string_view kAllowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    std::uint64_t random = 0;
    if (letters_ == nullptr ||
        base::system_call(SYS_getrandom, &random, sizeof random, 0) != sizeof random)
      return false;
    for (std::size_t i = 0; i < kLetters; ++i, random /= kAllowed.size())
      letters_[i] = kAllowed[random % kAllowed.size()];
    return true;
  }
  void keep() { letters_ = nullptr; }

 private:
  static constexpr std::size_t kLetters = 6;
  static constexpr const char* kTemplate = "XXXXXX";
  char* letters_ = nullptr;
};

bool creates(int flags) {
  return (flags & O_CREAT) != 0 && (flags & (O_TMPFILE & ~O_DIRECTORY)) == 0;
}

/// open, openat and creat.
struct Open : chain::OnPath {
  static int call(auto next, int directory, const char* path, int flags, mode_t mode) {
    const auto open = [=](bool created) {
      return next(directory, path, created ? flags & ~O_EXCL : flags, mode);
    };
    return creates(flags) ? create_and_open(directory, path, mode, open, (flags & O_EXCL) != 0)
                          : open(false);
  }
  static int call(auto next, int directory, const char* path, mode_t mode) {
    return create_and_open(directory, path, mode,
                           [=](bool) { return next(directory, path, mode); });
  }
};

/// A mode of fopen, without `x` if the file has been created for it.
class Mode {
 public:
  Mode(const char* mode, bool created) : text_(mode) {
    if (!created || std::strchr(mode, 'x') == nullptr || std::strlen(mode) >= sizeof plain_) return;
    char* end = plain_;
    for (bool flags = true; *mode != 0; ++mode) {
      flags = flags && *mode != ',';  // the name of a character set follows
      if (!flags || *mode != 'x') *end++ = *mode;
    }
    text_ = plain_;
  }
  const char* text() const { return text_; }

 private:
  char plain_[64] = {};
  const char* text_;
};

/// fopen and freopen.
struct OpenStream {
  static std::FILE* call(auto next, const char* path, const char* mode, auto... old) {
    const auto open = [=](bool created) { return next(path, Mode(mode, created).text(), old...); };
    return *mode == 'w' || *mode == 'a' ? create_and_open(AT_FDCWD, path, kStreamMode, open)
                                        : open(false);
  }
};

/// Opens a file that has just been created, for mkstemp and its variants.
int open_created(file::NewFile& file, const char* path, int flags, std::string_view whole,
                 const hints::StripingHints& hints) {
  constexpr int kCreationFlags = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC;
  const long opened =
      base::system_call(SYS_openat, AT_FDCWD, path, (flags & ~kCreationFlags) | O_RDWR);
  const int descriptor = static_cast<int>(opened);
  if (descriptor < 0) {
    file.remove();
    errno = -descriptor;
    return -1;
  }
  if (!file.is(descriptor)) return refuse(descriptor);
  const base::SavedErrno saved;
  log_outcome(whole, descriptor, hints, file);
  return descriptor;
}

/// Creates a file under a random name, as mkstemp. Empty if no setting concerns it or it cannot be
/// created here: the C library then creates it.
std::optional<int> create_temporary(char* path, std::size_t suffix, int flags) {
  constexpr int kMostTries = 100;
  TemporaryName name(path, suffix);
  for (int i = 0; i < kMostTries && name.choose(); ++i) {
    hints::StripingHints hints;
    const base::Path whole(AT_FDCWD, path);
    if (!whole.is_known() || !find_hints(whole.view(), hints)) return {};
    file::NewFile file(AT_FDCWD, path, kTemporaryMode, hints, 1, true);
    if (file.did_exist()) continue;
    if (!file.has_created()) return {};
    name.keep();
    return open_created(file, path, flags, whole.view(), hints);
  }
  return {};
}

constexpr bool has_suffix(Symbol symbol) {
  return symbol == Symbol::mkstemps || symbol == Symbol::mkstemps64 ||
         symbol == Symbol::mkostemps || symbol == Symbol::mkostemps64;
}

/// mkstemp and its variants.
struct Temporary {
  static int call(auto next, char* path, auto... numbers) {
    const int all[] = {numbers..., 0, 0};
    const int suffix = has_suffix(next.kSymbol) ? all[0] : 0,
              flags = has_suffix(next.kSymbol) ? all[1] : all[0];
    const bool treated = path != nullptr && suffix >= 0 && pario_in_vfork_child == 0;
    const auto descriptor =
        treated ? create_temporary(path, static_cast<std::size_t>(suffix), flags) : std::nullopt;
    return descriptor ? *descriptor : next(path, numbers...);
  }
};

/// tmpfile: a file without a name in the directory that the C library uses, with the settings of
/// new files in it.
struct Nameless {
  static std::FILE* call(auto next) {
    char path[] = P_tmpdir "/tmpfXXXXXX";
    const auto descriptor = pario_in_vfork_child == 0 ? create_temporary(path, 0, 0) : std::nullopt;
    if (!descriptor) return next();
    if (*descriptor < 0) return nullptr;
    base::system_call(SYS_unlinkat, AT_FDCWD, path, 0);
    std::FILE* stream =
        chain::entry<std::FILE* (*)(int, const char*), Symbol::fdopen>()(*descriptor, "w+");
    if (stream == nullptr) base::close_file(*descriptor);
    return stream;
  }
};

/// Sets the default stripes of a new directory: the settings for "NAME/".
void stripe_directory(int directory, const char* path) {
  const base::SavedErrno saved;
  const base::Path name(directory, path);
  base::Text<PATH_MAX + 1> with_slash;
  hints::StripingHints hints;
  if (name.is_known() && find_hints(with_slash.add(name.view()).add('/').view(), hints))
    file::stripe_directory(directory, path, hints);
}

/// mkdir and mkdirat.
struct Directory : chain::OnPath {
  static int call(auto next, int directory, const char* path, mode_t mode) {
    const int result = next(directory, path, mode);
    if (result == 0) stripe_directory(directory, path);
    return result;
  }
};

}  // namespace

bool is_active() { return !specifications().empty(); }

#define PARIO_THIS_LAYER striping
#include "layers/chain/treatment_of.def"

}  // namespace pario::striping
