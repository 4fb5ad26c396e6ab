// Module node_cache: facts about names, listings of directories and copies of files that the
// processes of a job share on a node. They lie in the directory PARIO_NODE_CACHE, which `pario run`
// makes in memory and removes at the end:
//
//   names/KEY   a symbolic link whose target is text: the facts of a name, or the note that the job
//               changes it; the key is a hash of the name
//   copies/KEY  a copy of a file
//   lists/KEY   a directory with the names of a listed directory
//   ahead/KEY   a copy of a file that a loader will open once; a mark for its directory
//   locks       one process at a time asks the file system about a name
//
// All are created by one atomic call. The first process asks the file system, the others read the
// answer. A name that the job changes gets a note for the rest of the job, before the change; an
// answer is never stored over a note, so that one that was asked for before the change is not used
// after it.
//
// Facts and listings are kept for names in the trees of PARIO_CACHED_TREES, "DIR[=REAL DIR]:...",
// and only for names without symbolic links between the tree and the last component.
//
// No heap, no stdio, no exceptions; all functions preserve errno. Any thread may call.
#pragma once

#include <sys/stat.h>

#include <climits>
#include <cstdint>
#include <string_view>

#include "core/base/base.hpp"

namespace pario::node_cache {

/// True if the job has a cache on this node. Reads the settings at the first call.
bool is_open();

/// The name of a file as the cache knows it.
class Name {
 public:
  Name(int directory, const char* path);
  /// The name with which a descriptor was opened, links resolved.
  explicit Name(int descriptor);
  /// An absolute name.
  explicit Name(std::string_view path);
  Name(const Name&) = delete;
  Name& operator=(const Name&) = delete;

  bool is_known() const { return text_.view().size() != 0 && text_.complete(); }
  /// True for names in a cached tree whose text is unambiguous.
  bool is_cached() const { return is_known() && cached_; }
  bool needs_directory() const { return needs_directory_; }  ///< it ends in a slash
  std::string_view view() const { return text_.view(); }

 private:
  void resolve(std::string_view path);

  base::Text<PATH_MAX> text_;
  bool cached_ = false, needs_directory_ = false;
};

/// The facts of a name.
struct Facts {
  enum class Kind : std::uint8_t { unknown, missing, present };
  Kind kind = Kind::unknown;  ///< unknown: ask the file system
  int error = 0;              ///< of a missing name
  struct stat status = {};    ///< of a present one, as of lstat

  bool is_missing() const { return kind == Kind::missing; }
  bool is_present() const { return kind == Kind::present; }
  bool is(mode_t type) const { return is_present() && (status.st_mode & S_IFMT) == type; }
};

/// Returns the facts of a cached name; asks the file system once per node.
Facts find(const Name& name);
/// The same for the file behind symbolic links; `end` receives its name. Links that leave the trees
/// give `unknown`.
Facts find_behind_links(const Name& name, base::TextBuffer& end);
/// Copies the target of a present symbolic link; returns its length, 0 if it is not known.
std::size_t read_target(const Name& name, char* out, std::size_t size);

/// Notes that the job changes a name, and so its directory. Before the change.
void note_change(const Name& name);
/// The same for a directory that changes its name, with all names in it: ends the use of facts and
/// listings.
void note_change_of_tree(const Name& name);

/// Writes the name of the copy of a regular file with these facts; makes it if it is missing.
/// False: use the file itself.
bool find_copy(std::string_view name, const Facts& facts, base::TextBuffer& copy);
/// Writes the name of the directory with the names of a directory. False: list it itself.
bool find_listing(const Name& name, base::TextBuffer& listing);

// ---- files copied ahead, in any directory

/// Copies a file ahead, if it has at most `most` bytes; returns its bytes, 0 without a copy.
std::uint64_t copy_ahead(std::string_view name, std::uint64_t most);
/// Appends the place of the copy.
void add_copy_ahead(base::TextBuffer& copy, std::string_view name);
/// Writes the place of the copy; false if the job changes the file. The copy may be missing.
bool find_copy_ahead(const Name& name, base::TextBuffer& copy);
/// Notes that the job changes a file, if files of its directory are copied ahead. Before the
/// change.
void note_change_ahead(const Name& name);

}  // namespace pario::node_cache
