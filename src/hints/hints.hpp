// Room hints: the one table of options and its parsers. No heap, no stdio: the preloaded library reads its options before main;
// what concerns the hints of a file (second half) is for the rooms that move data, and uses the heap.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.hpp"

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

/// When a hint of a file is read; those of `at_open` cannot change afterwards.
enum class When : std::uint8_t { anytime, at_open };

/// A row of a table, for documentation and for front ends.
struct HintInfo {
  const char* key;
  Type type;
  const char* initial;
  std::uint64_t least, most;
  const char* names;  ///< other names of the same, separated by blanks; of an option: its variable
  const char* meaning;
  When when = When::anytime;
};

/// All options with their values; the members are those of hints.def.
struct HintSet {
#define PARIO_HINT(key, kind, initial, least, most, environment, meaning) type::kind key;
#include "hints/hints.def"
#undef PARIO_HINT
};

std::span<const HintInfo> table();

/// Every option at its default.
HintSet defaults();

/// Sets one option. When the key is unknown or the value bad: false, `hints` is as before, and `error` says which key, which value, what
/// was expected and, for a key, what may have been meant.
bool set(HintSet& hints, std::string_view key, std::string_view value, base::TextBuffer& error);

/// Called with a complaint about one variable.
using Complain = void (*)(std::string_view text);
/// Applies the variables of the table found in `environment` ("NAME=value", null at the end). Bad values and misspelt names
/// (PARIO_TRACE_...) are complained about and ignored.
void read_environment(HintSet& hints, char* const* environment, Complain complain);
/// The options of this process, as its environment was at the first call. Thread-safe; complaints are the tracer's business.
const HintSet& of_process();

// ---- hints of one file (MPI-IO): from MPI_Info, from the environment with globs, from defaults. These use the heap.

/// What is set of the stripes of new files; the members are the rows of striping_hints.def, which are hints of a file, too.
struct StripingHints {
#define PARIO_FILE_HINT(key, kind, initial, least, most, aliases, when, meaning) type::kind key;
#include "hints/striping_hints.def"
#undef PARIO_FILE_HINT
  bool operator==(const StripingHints&) const = default;
};
StripingHints default_striping_hints();
/// What `specifications` (the value of PARIO_HINTS, see settings_from_environment) say of the stripes of a new file `path`; false: nothing.
/// What is malformed, and keys of other kinds, mean nothing here. No heap.
bool striping_hints_of(std::string_view specifications, std::string_view path, StripingHints& hints);

/// All hints of a file with their values; the members are the rows of file_hints.def.
struct FileHints : StripingHints {
#define PARIO_FILE_HINT(key, kind, initial, least, most, aliases, when, meaning) type::kind key;
#include "hints/file_hints.def"
#undef PARIO_FILE_HINT
};
FileHints default_file_hints();

/// What is in force after hints of an open file were changed: `wanted`, but for the rows that are
/// read at open.
FileHints hints_of_open_file(const FileHints& in_force, const FileHints& wanted);

std::span<const HintInfo> file_table();

/// A key and its value, as found.
struct Setting {
  std::string key, value;
};
/// A setting that was not taken, and why: which key, which value, what was expected, and, for a key, what may have been meant.
struct Rejected {
  Setting setting;
  std::string reason;
};

/// Applies one setting (by key or alias); false and a reason when the key is unknown or the value impossible, `hints` is then as before.
/// True with a reason: a key of another MPI-IO that means nothing here, and why (foreign_hints.def).
bool set(FileHints& hints, const Setting& setting, std::string& reason);
/// The canonical key of a key or alias; empty: no row of the table.
std::string_view canonical(std::string_view key);
/// Rows of the table, and keys of ROMIO, OMPIO and Cray that have no meaning here.
bool known(std::string_view key);
/// All keys with their values as text (sizes in bytes), in table order, without those whose text is empty: what MPI_File_get_info answers.
std::vector<Setting> settings_of(const FileHints& hints);

/// Settings for `path` from the environment, later ones win: ROMIO_HINTS (name of a file of "key value" lines), MPICH_MPIIO_HINTS and
/// PARIO_HINTS
/// ("glob:key=value:key=value,glob2:..."; the last glob that matches wins per key). Malformed parts are rejected, not ignored.
std::vector<Setting> settings_from_environment(std::string_view path, char* const* environment, std::vector<Rejected>& rejected);

/// Whether `path` is meant by `globs`, separated by colons: `*` stands for any characters (also '/'), `?` for one; the first glob that
/// matches decides, and one that begins with '!' decides for no.
bool matches(std::string_view globs, std::string_view path);

// ---- what a file's buffers do (streams), from the environment, with globs. No heap.

/// All that may be set for the buffers of a file; the members are the rows of stream_hints.def.
struct StreamHints {
#define PARIO_STREAM_HINT(key, kind, initial, least, most, meaning) type::kind key;
#include "hints/stream_hints.def"
#undef PARIO_STREAM_HINT
};
StreamHints default_stream_hints();

std::span<const HintInfo> stream_table();

/// What `specifications` say of `path`: "glob[:key[=value]]*[,glob...]*", the grammar of Cray's IOBUF_PARAMS; the first glob that matches
/// the path, or its last part when the glob has no '/', decides. "%stdin", "%stdout" and "%stderr" are paths of their own. False: none
/// matches, the file is not buffered.
bool stream_hints_of(std::string_view specifications, std::string_view path, StreamHints& hints);
/// Complains about each part of `specifications` that is malformed, unknown or impossible, with what may have been meant; such parts
/// mean nothing. `origin`: the variable.
void check_stream_specifications(std::string_view origin, std::string_view specifications, Complain complain);

/// The first of `specifications` that means `path`, as stream_hints_of takes it; empty: there is none.
std::string_view stream_specification_of(std::string_view specifications, std::string_view path);
/// Of a file in which what is in force is not what was understood: which key (empty: all), the value in force, and why.
struct StreamException {
  std::string_view key, effective, reason;
};
/// Appends an object (key, requested, applied, effective, reason) for each of the parameters of a specification, "key=value:key:...", to an
/// array. One call at a time.
void add_stream_audit(base::Json& json, std::string_view parameters, const StreamHints& effective,
                      std::span<const StreamException> exceptions);

}  // namespace pario::hints
