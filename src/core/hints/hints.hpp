// Module hints: the tables of options and hints, and their parsers. Any thread may call, unless
// stated otherwise. No heap, no stdio: the preloaded library reads its options before main. The
// hints of a file (second half) are for the modules that move data, and use the heap.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/base.hpp"

namespace pario::hints {

inline constexpr std::size_t kTextRoom = 1024;

/// The value of a text option.
struct TextValue {
  char data[kTextRoom];  ///< terminated by zero
  std::string_view view() const { return data; }
};

enum class Choice : std::uint8_t { automatic, enable, disable };
enum class StdioMode : std::uint8_t { as_is, full, line, none };

/// The types of all tables. seconds: with decimals; octal: digits of a mode; report: words of
/// pario_report.
namespace type {
using text = TextValue;
using bytes = std::uint64_t;
using count = std::uint64_t;
using seconds = std::chrono::milliseconds;
using flag = bool;
using choice = Choice;
using mode = StdioMode;
using octal = std::string;
using report = std::string;
}  // namespace type
enum class Type : std::uint8_t { text, bytes, count, seconds, flag, choice, mode, octal, report };

/// The moment at which a hint of a file takes effect. Only `anytime` hints can change while the
/// file is open. at_creation: only for a new file. striping: only for a new file; afterwards the
/// value is that of the file, or the default if its file system does not report it.
enum class When : std::uint8_t { anytime, at_open, at_creation, striping };

/// risky: changes the data that a crash loses, or how other processes see the file meanwhile.
enum class Risk : std::uint8_t { safe, risky };

/// A row of a table, for documentation and for front ends.
struct HintInfo {
  std::string_view key;
  Type type;
  const char* initial;
  std::uint64_t least, most;
  const char* names;  ///< other names, separated by blanks; of an option: its variable
  const char* meaning;
  When when = When::anytime;
  const char* setting = "";  ///< table and key in pario.toml, "streams.size"; empty: none
  Risk risk = Risk::safe;
};

/// The options with their values; the members are those of hints.def.
struct HintSet {
#define PARIO_HINT(key, kind, initial, least, most, variable, setting, meaning) type::kind key;
#include "core/hints/hints.def"
#undef PARIO_HINT
};

std::span<const HintInfo> table();

/// Returns all options at their defaults.
HintSet defaults();

/// Sets one option. On an unknown key or a bad value returns false, leaves `hints` unchanged, and
/// writes to `error` the key, the value, the expectation and, for a key, a suggestion.
bool set(HintSet& hints, std::string_view key, std::string_view value, base::TextBuffer& error);

/// A callback for a complaint about one variable.
using Complain = void (*)(std::string_view text);
/// Applies the variables of the table in `environment` ("NAME=value", null at the end). Bad values
/// and misspelt names (PARIO_TRACE_...) are ignored with a complaint.
void read_environment(HintSet& hints, char* const* environment, Complain complain);
/// Returns the options of this process, from its environment at the first call. Thread-safe; the
/// tracer reports complaints.
const HintSet& of_process();

// ---- hints of one file (MPI-IO): from MPI_Info, from the environment with globs, from defaults.
// These functions use the heap.

/// The hints for the stripes of new files; the members are the rows of striping_hints.def, which
/// are hints of a file, too.
struct StripingHints {
#define PARIO_FILE_HINT(key, kind, initial, least, most, aliases, when, meaning) type::kind key;
#include "core/hints/striping_hints.def"
#undef PARIO_FILE_HINT
  bool operator==(const StripingHints&) const = default;
};
StripingHints default_striping_hints();
/// Reads the hints for the stripes of a new file `path` from `specifications` (the value of
/// PARIO_HINTS, see settings_from_environment()); false: there are none. Ignores malformed parts
/// and other keys. No heap.
bool striping_hints_of(std::string_view specifications, std::string_view path,
                       StripingHints& hints);
/// Returns true if a key or alias of striping_hints.def occurs in `specifications`. No heap.
bool name_striping(std::string_view specifications);

/// The hints of a file with their values; the members are the rows of file_hints.def.
struct FileHints : StripingHints {
#define PARIO_FILE_HINT(key, kind, initial, least, most, aliases, when, meaning) type::kind key;
#include "core/hints/file_hints.def"
#undef PARIO_FILE_HINT
  bool operator==(const FileHints&) const = default;
};
FileHints default_file_hints();

/// Returns the hints in force after a change for an open file: `wanted`, except for the rows that
/// are read at open.
FileHints hints_of_open_file(const FileHints& in_force, const FileHints& wanted);

std::span<const HintInfo> file_table();

/// A key and its value, both as text.
struct Setting {
  std::string key, value;
};
/// A rejected setting and the reason: key, value, expectation, and a suggestion for a key.
struct Rejected {
  Setting setting;
  std::string reason;
};

/// Applies one setting (by key or alias). On an unknown key or an impossible value returns false
/// with a reason and leaves `hints` unchanged. True with a reason: a key of another MPI-IO without
/// an effect here (foreign_hints.def).
bool set(FileHints& hints, const Setting& setting, std::string& reason);
/// Returns the row of a key or alias; null: none. Thread-safe.
const HintInfo* find_file_hint(std::string_view key);
/// Returns the canonical key of a key or alias; empty: none.
std::string_view canonical(std::string_view key);
/// True for rows of the table, and for keys of ROMIO, OMPIO and Cray without an effect here.
bool is_known_key(std::string_view key);
/// Returns all keys with their values as text (sizes in bytes), in table order, without empty
/// texts.
std::vector<Setting> settings_of(const FileHints& hints);
/// Returns the settings of MPI_File_get_info: all except `striping` hints at their default, which
/// the file system does not report.
std::vector<Setting> known_settings_of(const FileHints& hints);

/// Reads the settings for `path` from the environment, in ascending priority: ROMIO_HINTS (name of
/// a file of "key value" lines), MPICH_MPIIO_HINTS and PARIO_HINTS
/// ("glob:key=value:key=value,glob2:..."; the last matching glob wins per key). Adds malformed
/// parts to `rejected`.
std::vector<Setting> settings_from_environment(std::string_view path, char* const* environment,
                                               std::vector<Rejected>& rejected);

/// Returns true if `globs`, separated by colons, select `path`: `*` stands for any characters (also
/// '/'), `?` for one; the first matching glob decides, and one that begins with '!' excludes.
bool matches(std::string_view globs, std::string_view path);

// ---- parameters of buffered files (streams), from the environment, with globs. No heap.

/// The parameters of a buffered file; the members are the rows of stream_hints.def.
struct StreamHints {
#define PARIO_STREAM_HINT(key, kind, initial, least, most, setting, risk, meaning) type::kind key;
#include "core/hints/stream_hints.def"
#undef PARIO_STREAM_HINT
};
StreamHints default_stream_hints();

std::span<const HintInfo> stream_table();

/// Reads the parameters of `path` from `specifications`: "glob[:key[=value]]*[,glob...]*", the
/// grammar of Cray's IOBUF_PARAMS; the first glob that matches the path decides, or its last part
/// if the glob has no '/'. "%stdin", "%stdout" and "%stderr" are paths. False: none matches, the
/// file is not buffered.
bool stream_hints_of(std::string_view specifications, std::string_view path, StreamHints& hints);
/// Complains about each malformed, unknown or impossible part of `specifications`, with a
/// suggestion; such parts have no effect. `origin`: the variable.
void check_stream_specifications(std::string_view origin, std::string_view specifications,
                                 Complain complain);

/// Returns the first of `specifications` that selects `path`, like stream_hints_of(); empty: none.
std::string_view stream_specification_of(std::string_view specifications, std::string_view path);
/// A difference between the parameters in force and the parameters understood: the key (empty:
/// all), the value in force, and the reason.
struct StreamException {
  std::string_view key, effective, reason;
};
/// Appends an object (key, requested, applied, effective, reason) to an array for each parameter of
/// a specification, "key=value:key:...". One call at a time.
void add_stream_audit(base::Json& json, std::string_view parameters, const StreamHints& effective,
                      std::span<const StreamException> exceptions);

}  // namespace pario::hints
