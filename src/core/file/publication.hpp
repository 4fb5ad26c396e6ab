// Publication: a file or directory is written aside and gets its name when it is complete.
//
// A temporary file lies beside its target as ".NAME.HOST8SLOT8.pario-part": the target's name, then
// 8 hexadecimal digits of a hash of the host's name and 8 of a slot. The process that writes it
// holds a flock(2) lock on it, by which others recognise a stale one. A process removes only stale
// files of its own host: not all file systems show one host the locks of another. Where a file
// system has no locks, stale files stay.
//
// Symbolic links in the place of a temporary file are removed, never followed.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/base.hpp"

namespace pario::file {

/// 32 bits of a hash of this host's name.
std::uint32_t host_mark();
/// The number in a part's name: the host's mark in the upper half, a slot in the lower.
inline std::uint64_t part_number(std::uint32_t slot) {
  return std::uint64_t{host_mark()} << 32 | slot;
}
/// A number with a random slot, for several processes that open one part by its name.
std::uint64_t random_part_number();

/// The end of the name of every part.
inline constexpr std::string_view kPartEnding = ".pario-part";
/// The longest target name that a part's name contains unchanged.
inline constexpr std::size_t kLongestPartLabel = 226;
/// A name of at most `limit` bytes: the name itself, or its beginning and a hash of all of it.
std::string part_label(std::string_view name, std::size_t limit = kLongestPartLabel);
/// The path of a target's temporary file.
std::string part_path(const std::string& target, std::uint64_t number);
/// The label in the name of a part that this host made; empty for other names.
std::string_view label_of_own_part(std::string_view name);
/// True for the name of a part of a target, made by this host.
bool is_own_part(std::string_view name, std::string_view target);

/// Removes a temporary file, directory or link that no process has locked. True: nothing is there
/// any more; false with errno EBUSY: it is in use.
bool remove_stale_part(const std::string& path);
/// Removes the stale parts among the entries of a directory that `selects` names.
void remove_stale_parts(const std::string& directory,
                        const std::function<bool(std::string_view name)>& selects);

/// Removes a file, or a directory with all that is in it.
void remove_tree(const std::string& path);
/// The directory of a path: "." for a bare name.
std::string directory_of(const std::string& path);
/// A path without links and dots; empty if it does not exist.
std::string real_path(const std::string& path);

/// One new file or directory. Unless it was published, the destructor removes it with all that is
/// in it. Not thread-safe.
class Publication {
 public:
  enum class Existing : std::uint8_t {
    keep,    ///< EEXIST if the target exists
    replace  ///< files only
  };
  struct Options {
    mode_t mode = 0666;  ///< less the umask
    int flags = 0;       ///< further flags of open(2); O_DIRECT only where the file system has it
    bool nameless = false;  ///< without a name (O_TMPFILE) until publish(), where that is possible:
                            ///< a killed process then leaves nothing
    std::optional<std::uint64_t> number = {};  ///< in its name; default: the first free slot
    bool durable = true;                       ///< publish() writes bytes and name to the disk
  };
  /// A new file. Removes stale parts of this target in the slots it looks at. EEXIST: another
  /// process uses the `number`.
  static base::Result<Publication> of_file(const std::string& target, const Options& options);
  static base::Result<Publication> of_file(const std::string& target) {
    return of_file(target, Options());
  }
  struct DirectoryOptions {
    mode_t mode = 0777;      ///< less the umask
    bool exclusive = true;   ///< EBUSY while another process of this host makes the target
    bool temporary = false;  ///< is never published, so the target may exist
  };
  /// A new directory. Removes stale parts of this target in the slots it looks at. EEXIST: the
  /// target exists; EBUSY: another process of this host makes it, or as many as there are slots.
  static base::Result<Publication> of_directory(const std::string& target,
                                                const DirectoryOptions& options);
  static base::Result<Publication> of_directory(const std::string& target) {
    return of_directory(target, DirectoryOptions());
  }

  Publication(Publication&& other) noexcept;
  Publication& operator=(Publication&& other) = delete;
  ~Publication();

  const std::string& target() const { return target_; }
  /// Path of the temporary file; empty: it has none.
  const std::string& part() const { return part_; }
  /// Open for reading and writing; belongs to this object.
  int descriptor() const { return descriptor_; }

  /// Writes the file to the disk, gives it its name, and writes the name to the disk; a file that
  /// is not durable only gets its name. After an error the target is unchanged, unless the error is
  /// that of fsync(2) on the directory.
  base::Status publish(Existing existing);
  /// Gives up the file: the caller closes the descriptor and removes or renames part().
  int release();

 private:
  Publication(std::string target, std::string part, int descriptor, bool is_directory,
              bool durable = true);
  int rename_part(Existing existing);
  int rename_exclusively();
  int link_nameless(Existing existing);

  std::string target_, part_;
  int descriptor_ = -1;
  bool is_directory_ = false, durable_ = true;
};

}  // namespace pario::file
