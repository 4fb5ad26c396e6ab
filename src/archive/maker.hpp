// Files and what else a directory has, made as a header says. Names begin at an open directory and never lead out of it.
#pragma once

#include <sys/types.h>

#include <string>

#include "archive/header.hpp"
#include "archive/stream.hpp"

namespace pario::archive {

class Maker {
 public:
  /// `root` is the descriptor of `directory`, which the caller keeps open.
  Maker(std::string directory, int root);

  /// A member without its time, owner and permissions where it is a directory; what is behind its header is read from `tar`.
  base::Status make(const Header& header, TarStream& tar) const;
  /// A directory that may be written, and those above it.
  base::Status make_directory(const std::string& name) const;
  /// Owner, permissions, attributes and time.
  base::Status finish_directory(const Header& header) const;

 private:
  base::Status make_file(const Header& header, TarStream& tar) const;
  base::Status fill(const Header& header, TarStream& tar, int descriptor) const;
  /// Where its bytes lie; with holes that is read from `tar`.
  base::Status find_data(const Header& header, TarStream& tar, std::vector<base::Extent>& data) const;
  /// `made`: the permissions it has now.
  base::Status finish(const Header& header, int descriptor, mode_t made) const;
  base::Status make_special(const Header& header) const;
  base::Error failed(const char* operation, const Header& header) const;
  bool gives_away(const Header& header) const;

  std::string directory_;
  int root_;
  mode_t umask_;
  bool is_root_;
};

/// Whether a name stays within the directory it begins at.
bool is_inside(std::string_view name);

}  // namespace pario::archive
