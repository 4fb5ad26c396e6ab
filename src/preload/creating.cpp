#include "preload/creating.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <optional>

#include "hints/hints.hpp"
#include "preload/descriptions.hpp"
#include "preload/stand_ins.hpp"
#include "preload/tracer.hpp"
#include "storage/new_file.hpp"
#include "trace/trace.hpp"

namespace pario::preload::creating {
namespace {

constexpr std::string_view kVariable = "PARIO_HINTS=";
constexpr int kMostNotes = 1000;  // of a process: who makes more files is not to have a log of files
constexpr unsigned kStreamMode = 0666;

constinit StandIns stand_ins;
constinit std::atomic<int> notes{0};

/// Whether a specification may be about stripes.
bool names_stripes(std::string_view text) {
#define PARIO_FILE_HINT(key, kind, initial, least, most, aliases, when, meaning) \
  if (text.find(#key) != text.npos || text.find(aliases) != text.npos) return true;
#include "hints/striping_hints.def"
#undef PARIO_FILE_HINT
  return false;
}

/// A copy, since programs may write over their environment; empty where no specification is about stripes.
std::string_view read_specifications() {
  for (char* const* variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    std::string_view text = *variable;
    if (!text.starts_with(kVariable) || !names_stripes(text)) continue;
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

template <Symbol symbol, class Result, class... Args>
Result next(Args... args) {
  return stand_ins.next<symbol, Result>(args...);
}

constexpr std::uint64_t kNone = ~std::uint64_t{0};

std::uint64_t or_none(std::uint64_t number) { return number != 0 ? number : kNone; }

struct Row {
  const char* key;
  std::uint64_t requested, applied, effective;
};

void add_number(base::Json& json, const char* key, std::uint64_t number) {
  base::Text<32> text;
  if (number != kNone) text.add(number);
  json.member(key, text.view());
}

void add_row(base::Json& json, const Row& row, std::string_view reason) {
  if (row.requested == kNone && row.applied == kNone) return;
  json.begin_object().member("key", row.key);
  add_number(json, "requested", row.requested);
  add_number(json, "applied", row.applied);
  add_number(json, "effective", row.effective);
  json.member("reason", reason).end_object();
}

/// Of the settings that ask for stripes, and of what they follow from.
void add_rows(base::Json& json, const hints::StripingHints& asked, const storage::NewFile& file, std::string_view reason) {
  const layout::Striping &wanted = file.wanted(), &got = file.effective();
  const std::uint64_t start = wanted.start < 0 ? kNone : static_cast<std::uint64_t>(wanted.start);
  const std::uint64_t size = or_none(file.expected_size()), writers = or_none(asked.pario_expected_writers);
  const std::uint64_t grows = asked.pario_growing ? 1 : kNone;
  add_row(json, {"striping_factor", or_none(asked.striping_factor), or_none(wanted.targets), or_none(got.targets)}, reason);
  add_row(json, {"striping_unit", or_none(asked.striping_unit), or_none(wanted.unit), or_none(got.unit)}, reason);
  add_row(json, {"start_iodevice", start, start, reason.empty() ? start : kNone}, reason);
  const bool earlier = file.expected_size() != asked.pario_expected_size;
  add_row(json, {"pario_expected_size", or_none(asked.pario_expected_size), size, size}, earlier ? "as earlier files of its name" : "");
  add_row(json, {"pario_expected_writers", writers, writers, writers}, "");
  add_row(json, {"pario_growing", grows, grows, wanted == layout::Striping{} ? kNone : grows}, reason);
}

/// What became of the settings, for the log.
void note(std::string_view path, int descriptor, const hints::StripingHints& asked, const storage::NewFile& file) {
  if (!active() || notes.fetch_add(1, std::memory_order_relaxed) >= kMostNotes) return;
  const trace::Record* record = nullptr;
  in_tracer([&] { record = record_of(trace::Layer::posix, path, descriptor); });
  base::Text<256> reason;
  file.add_reason(reason);
  base::Text<6000> text;
  base::Json json(text);
  json.begin_object().member("note", "striping").member("path", path);
  if (record != nullptr) json.member("record", trace::index_of(record));
  json.key("hints").begin_array();
  add_rows(json, asked, file, reason.view());
  json.end_array().end_object();
  if (text.complete()) trace::note(json.view());
}

bool asks(std::string_view path, hints::StripingHints& hints) { return hints::striping_hints_of(specifications(), path, hints); }

int descriptor_of(int opened) { return opened; }
int descriptor_of(const std::FILE* opened) { return opened == nullptr ? -1 : opened->_fileno; }

/// What somebody else has put in the place of the file that was made for an open with O_EXCL.
int refuse(int descriptor) {
  base::close_file(descriptor);
  errno = EEXIST;
  return -1;
}
std::FILE* refuse(std::FILE* stream) { return stream; }  // its mode hardly ever has an x

/// An open that may create: `open(true)` when the file has just been made for it.
template <class Open>
auto created(int directory, const char* path, unsigned mode, Open open, bool exclusive = false) {
  hints::StripingHints hints;
  const base::Path name(directory, path);
  if (path == nullptr || pario_in_vfork_child != 0 || !name.known() || !asks(name.view(), hints)) return open(false);
  storage::NewFile file(directory, path, mode, hints, 1, exclusive);
  const auto result = open(file.created());
  const int descriptor = descriptor_of(result);
  if (descriptor >= 0 && exclusive && file.created() && !file.is(descriptor)) return refuse(result);
  const base::SavedErrno saved;
  if (descriptor < 0)
    file.remove();
  else
    note(name.view(), descriptor, hints, file);
  return result;
}

constexpr unsigned kTemporaryMode = 0600;

/// A path with six X before its suffix, which become other letters; X again at the end, unless it is kept.
class TemporaryName {
 public:
  TemporaryName(char* path, std::size_t suffix) {
    const std::string_view whole(path);
    if (whole.size() < kLetters + suffix || whole.substr(whole.size() - suffix - kLetters, kLetters) != kTemplate) return;
    letters_ = path + whole.size() - suffix - kLetters;
  }
  ~TemporaryName() {
    if (letters_ != nullptr) std::memcpy(letters_, kTemplate, kLetters);
  }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  bool choose() {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    std::uint64_t random = 0;
    if (letters_ == nullptr || base::system_call(SYS_getrandom, &random, sizeof random, 0) != sizeof random) return false;
    for (std::size_t i = 0; i < kLetters; ++i, random /= kAllowed.size()) letters_[i] = kAllowed[random % kAllowed.size()];
    return true;
  }
  void keep() { letters_ = nullptr; }

 private:
  static constexpr std::size_t kLetters = 6;
  static constexpr const char* kTemplate = "XXXXXX";
  char* letters_ = nullptr;
};

bool creates(int flags) { return (flags & O_CREAT) != 0 && (flags & (O_TMPFILE & ~O_DIRECTORY)) == 0; }

template <Symbol, class>
struct Opening;
template <Symbol symbol>
struct Opening<symbol, int(const char*, int, mode_t)> {
  static int call(const char* path, int flags, mode_t mode) {
    const auto open = [=](bool made) { return next<symbol, int>(path, made ? flags & ~O_EXCL : flags, mode); };
    return creates(flags) ? created(AT_FDCWD, path, mode, open, (flags & O_EXCL) != 0) : open(false);
  }
};
template <Symbol symbol>
struct Opening<symbol, int(int, const char*, int, mode_t)> {
  static int call(int directory, const char* path, int flags, mode_t mode) {
    const auto open = [=](bool made) { return next<symbol, int>(directory, path, made ? flags & ~O_EXCL : flags, mode); };
    return creates(flags) ? created(directory, path, mode, open, (flags & O_EXCL) != 0) : open(false);
  }
};
template <Symbol symbol>
struct Opening<symbol, int(const char*, mode_t)> {
  static int call(const char* path, mode_t mode) {
    return created(AT_FDCWD, path, mode, [=](bool) { return next<symbol, int>(path, mode); });
  }
};

/// A mode of fopen without `x`, which has done its work.
class Mode {
 public:
  Mode(const char* mode, bool made) : text_(mode) {
    if (!made || std::strchr(mode, 'x') == nullptr || std::strlen(mode) >= sizeof plain_) return;
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

template <Symbol, class>
struct OpeningStream;
template <Symbol symbol, class... Old>
struct OpeningStream<symbol, std::FILE*(const char*, const char*, Old...)> {
  static std::FILE* call(const char* path, const char* mode, Old... old) {
    const auto open = [=](bool made) { return next<symbol, std::FILE*>(path, Mode(mode, made).text(), old...); };
    return *mode == 'w' || *mode == 'a' ? created(AT_FDCWD, path, kStreamMode, open) : open(false);
  }
};

int open_made(storage::NewFile& file, const char* path, int flags, std::string_view whole, const hints::StripingHints& hints) {
  constexpr int kNotAgain = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC;
  const long opened = base::system_call(SYS_openat, AT_FDCWD, path, (flags & ~kNotAgain) | O_RDWR);
  const int descriptor = static_cast<int>(opened);
  if (descriptor < 0) {
    file.remove();
    errno = -descriptor;
    return -1;
  }
  if (!file.is(descriptor)) return refuse(descriptor);
  const base::SavedErrno saved;
  note(whole, descriptor, hints, file);
  return descriptor;
}

/// A file whose name the C library would choose; nothing: settings say nothing of it, or it is for the C library to make.
std::optional<int> created_temporary(char* path, std::size_t suffix, int flags) {
  constexpr int kMostTries = 100;
  TemporaryName name(path, suffix);
  for (int i = 0; i < kMostTries && name.choose(); ++i) {
    hints::StripingHints hints;
    const base::Path whole(AT_FDCWD, path);
    if (!whole.known() || !asks(whole.view(), hints)) return {};
    storage::NewFile file(AT_FDCWD, path, kTemporaryMode, hints, 1, true);
    if (file.existed()) continue;
    if (!file.created()) return {};
    name.keep();
    return open_made(file, path, flags, whole.view(), hints);
  }
  return {};
}

constexpr bool has_suffix(Symbol symbol) {
  return symbol == Symbol::mkstemps || symbol == Symbol::mkstemps64 || symbol == Symbol::mkostemps || symbol == Symbol::mkostemps64;
}

template <Symbol, class>
struct Naming;
template <Symbol symbol, class... Numbers>
struct Naming<symbol, int(char*, Numbers...)> {
  static int call(char* path, Numbers... numbers) {
    const int all[] = {numbers..., 0, 0};
    const int suffix = has_suffix(symbol) ? all[0] : 0, flags = has_suffix(symbol) ? all[1] : all[0];
    const bool mine = path != nullptr && suffix >= 0 && pario_in_vfork_child == 0;
    const auto made = mine ? created_temporary(path, static_cast<std::size_t>(suffix), flags) : std::nullopt;
    return made ? *made : next<symbol, int>(path, numbers...);
  }
};

/// A file without a name, in the directory that the C library takes: what settings say of files that are made there.
template <Symbol, class>
struct Nameless;
template <Symbol symbol>
struct Nameless<symbol, std::FILE*()> {
  static std::FILE* call() {
    char path[] = P_tmpdir "/tmpfXXXXXX";
    const auto made = pario_in_vfork_child == 0 ? created_temporary(path, 0, 0) : std::nullopt;
    if (!made) return next<symbol, std::FILE*>();
    if (*made < 0) return nullptr;
    base::system_call(SYS_unlinkat, AT_FDCWD, path, 0);
    std::FILE* stream = real<std::FILE* (*)(int, const char*), Symbol::fdopen>()(*made, "w+");
    if (stream == nullptr) base::close_file(*made);
    return stream;
  }
};

/// What files get that are made in a new directory: settings for "NAME/".
void stripe_directory(int directory, const char* path) {
  const base::SavedErrno saved;
  const base::Path name(directory, path);
  base::Text<PATH_MAX + 1> with_slash;
  hints::StripingHints hints;
  if (name.known() && asks(with_slash.add(name.view()).add('/').view(), hints)) storage::stripe_directory(directory, path, hints);
}

template <Symbol, class>
struct Making;
template <Symbol symbol>
struct Making<symbol, int(const char*, mode_t)> {
  static int call(const char* path, mode_t mode) {
    const int result = next<symbol, int>(path, mode);
    if (result == 0) stripe_directory(AT_FDCWD, path);
    return result;
  }
};
template <Symbol symbol>
struct Making<symbol, int(int, const char*, mode_t)> {
  static int call(int directory, const char* path, mode_t mode) {
    const int result = next<symbol, int>(directory, path, mode);
    if (result == 0) stripe_directory(directory, path);
    return result;
  }
};

void* treatment_of(Symbol symbol) {
  switch (symbol) {
#define PARIO_CREATING(name, treatment, ...) \
  case Symbol::name:                         \
    return reinterpret_cast<void*>(&treatment<Symbol::name, __VA_ARGS__>::call);
#include "preload/creating.def"
#undef PARIO_CREATING
    default:
      return nullptr;
  }
}

}  // namespace

void* stand_in(Symbol symbol, void* function) {
  void* instead = treatment_of(symbol);
  if (instead == nullptr || specifications().empty()) return function;
  return stand_ins.put(symbol, instead, function);
}

}  // namespace pario::preload::creating
