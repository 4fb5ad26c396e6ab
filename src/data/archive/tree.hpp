// The entries of a directory tree, with all metadata that tar stores.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/records.hpp"

namespace pario::archive {

struct Entry {
  std::string name = {};    ///< relative to the directory, which is "." itself
  std::string target = {};  ///< of a symbolic link; of a hard link the first name of the file
  std::uint32_t mode = 0, user = 0, group = 0;
  std::uint64_t size = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970
  std::uint64_t device = 0, number = 0, links = 0;
  std::uint64_t special = 0;            ///< the device of a device file
  bool linked = false;                  ///< a hard link to `target`
  bool sparse = false;                  ///< it has holes; `data` has the extents between them
  std::vector<base::Extent> data = {};  ///< in order, one for a file without holes

  bool is_directory() const;
  bool is_file() const;
  std::uint64_t data_size() const;
};

/// The path of an entry, relative to the working directory unless `directory` is absolute.
std::string path_of(const std::string& directory, const std::string& name);

/// All entries of a tree, sorted by the bytes of their names, the directory itself first. Sockets
/// are left out, because tar cannot store them.
base::Result<std::vector<Entry>> entries_of(const std::string& directory, unsigned threads,
                                            records::Meter& meter);

/// True if the open file differs from its entry.
bool has_changed(const Entry& entry, int descriptor);

}  // namespace pario::archive
