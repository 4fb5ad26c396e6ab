// Creates files, directories, links and devices from headers. Names are relative to an open
// directory and never lead out of it.
#pragma once

#include <sys/types.h>

#include <string>

#include "data/archive/attributes.hpp"
#include "data/archive/header.hpp"
#include "data/archive/losses.hpp"
#include "data/archive/stream.hpp"

namespace pario::archive {

class Maker {
 public:
  /// `root` is the descriptor of `directory`, which is new. The caller keeps it open, and `losses`.
  /// Without `same_permissions` files get those of the archive less the umask, and no set-user-ID,
  /// set-group-ID and sticky bits, access control lists and capabilities.
  Maker(std::string directory, int root, Losses& losses, bool same_permissions = true);

  /// Creates a member with its content from `tar`. A directory gets no time, owner and permissions
  /// yet.
  base::Status make(const Header& header, TarStream& tar) const;
  /// Creates a writable directory, and those above it.
  base::Status make_directory(const std::string& name) const;
  /// Sets the permissions of a directory without a header: those of `mode`, but no set-user-ID and
  /// set-group-ID bits, and less the umask without `same_permissions`.
  base::Status permit_directory(const std::string& name, mode_t mode) const;
  /// The permissions of a new directory by the umask.
  mode_t usual_directory() const;
  /// Sets owner, permissions, attributes and time.
  base::Status finish_directory(const Header& header) const;

  // A file in parts:
  /// Creates a file that only this process writes; the caller closes it. -1: it cannot have its
  /// name here, which is counted as a loss.
  base::Result<int> begin_file(const Header& header) const;
  /// Writes a part of the file, from the next bytes of `tar`.
  base::Status put(const Header& header, int descriptor, base::Extent part, TarStream& tar) const;
  base::Status finish_file(const Header& header, int descriptor) const;

 private:
  /// Creates a directory whose parent exists or cannot exist here either.
  base::Status make_one_directory(const std::string& name) const;
  /// The permissions of a file created with the mode `asked`; unknown if the directory decides.
  mode_t made_with(mode_t asked) const;
  /// Opens a new file; -1 as in begin_file().
  base::Result<int> open_new(const Header& header, mode_t mode) const;
  base::Status make_file(const Header& header, TarStream& tar) const;
  base::Status fill(const Header& header, TarStream& tar, int descriptor) const;
  /// Completes a file. `made`: its present permissions, if they are known.
  base::Status finish(const Header& header, int descriptor, mode_t made) const;
  base::Status make_special(const Header& header) const;
  base::Status finish_special(const Header& header) const;
  /// Success if the call succeeded, or its failure is counted as a loss.
  base::Status possible(int result, Missing what, const char* operation,
                        const Header& header) const;
  Attributes attributes_of(const Header& header) const;
  base::Status give_attributes(const Header& header, int descriptor) const;
  /// The permissions to set, for the present owner and group of the file (`descriptor`; -1: of the
  /// name): none that let others act as a user who did not own the file in the archive.
  mode_t mode_of(const Header& header, int descriptor) const;
  base::Error call_error(const char* operation, const Header& header) const;
  bool gives_away(const Header& header) const;

  std::string directory_;
  int root_;
  Losses& losses_;
  bool same_permissions_;
  mode_t umask_;
  bool is_root_, is_for_root_, inherits_;
};

/// True if a name does not lead out of the directory where it starts.
bool is_inside(std::string_view name);

}  // namespace pario::archive
