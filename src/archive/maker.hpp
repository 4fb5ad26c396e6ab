// Files and what else a directory has, made as a header says. Names begin at an open directory and never lead out of it.
#pragma once

#include <sys/types.h>

#include <string>

#include "archive/attributes.hpp"
#include "archive/header.hpp"
#include "archive/losses.hpp"
#include "archive/stream.hpp"

namespace pario::archive {

class Maker {
 public:
  /// `root` is the descriptor of `directory`, which is new. The caller keeps it open, and `losses`.
  /// Without `same_permissions` files get those of the archive less the umask, and no set-user-ID,
  /// set-group-ID and sticky bits, access control lists and capabilities.
  Maker(std::string directory, int root, Losses& losses, bool same_permissions = true);

  /// A member without its time, owner and permissions where it is a directory; what is behind its header is read from `tar`.
  base::Status make(const Header& header, TarStream& tar) const;
  /// A directory that may be written, and those above it.
  base::Status make_directory(const std::string& name) const;
  /// Owner, permissions, attributes and time.
  base::Status finish_directory(const Header& header) const;

  // A file in parts:
  /// New, to be written by us alone; the caller closes it. -1: it can have no place here, which is counted.
  base::Result<int> begin_file(const Header& header) const;
  /// A part of its bytes, which come next in `tar`.
  base::Status put(const Header& header, int descriptor, base::Extent part, TarStream& tar) const;
  base::Status finish_file(const Header& header, int descriptor) const;

 private:
  /// One whose parent is there, or cannot be had here either.
  base::Status make_one_directory(const std::string& name) const;
  /// The permissions of a file that was made with those asked for.
  mode_t made_with(mode_t asked) const;
  /// -1 as in begin_file.
  base::Result<int> open_new(const Header& header, mode_t mode) const;
  base::Status make_file(const Header& header, TarStream& tar) const;
  base::Status fill(const Header& header, TarStream& tar, int descriptor) const;
  /// `made`: the permissions it has now, where they are known.
  base::Status finish(const Header& header, int descriptor, mode_t made) const;
  base::Status make_special(const Header& header) const;
  base::Status finish_special(const Header& header) const;
  /// Nothing where the call that made `header` what it is went well, or nobody can have it here.
  base::Status possible(int result, Missing what, const char* operation, const Header& header) const;
  Attributes attributes_of(const Header& header) const;
  base::Status give_attributes(const Header& header, int descriptor) const;
  /// Its permissions, where it has the owner and the group that it has now (`descriptor`, or -1: of the name): none that would let others
  /// act as somebody whose file it was not.
  mode_t mode_of(const Header& header, int descriptor) const;
  base::Error failed(const char* operation, const Header& header) const;
  bool gives_away(const Header& header) const;

  std::string directory_;
  int root_;
  Losses& losses_;
  bool same_permissions_;
  mode_t umask_;
  bool is_root_, is_for_root_, inherits_;
};

/// Whether a name stays within the directory it begins at.
bool is_inside(std::string_view name);

}  // namespace pario::archive
