// Indexes of files that have none beside them, kept in the cache directory of the user
// (docs/records.md, Indexes of read-only data).
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/base/base.hpp"
#include "data/records/indexing.hpp"

namespace pario::records {

/// PARIO_CACHE, else the directory pario of XDG_CACHE_HOME or ~/.cache, and in it "indexes"; empty
/// if none of these variables is set.
std::string cache_directory();

/// The file of the index of `path`, as the file is now. `kind`: the format that was searched for;
/// none: the index that pario records index made, for readers that name no format.
base::Result<std::string> cached_index_path(const std::string& path, std::optional<Kind> kind);

/// ENOENT: there is no whole one of the file as it is now. Any number of processes.
base::Result<Index> open_cached_index(const std::string& path, std::optional<Kind> kind);

/// Publishes an index in the place of older ones of the same file; returns its path. Entries that
/// were not used for the longest time are removed when all of them together exceed
/// PARIO_CACHE_SIZE.
base::Result<std::string> write_cached_index(const std::string& path, std::optional<Kind> kind,
                                             std::span<const std::byte> image);

struct FoundIndex {
  Index index;
  base::Status kept;  ///< an Error: it could not be kept in the cache
};
/// The index in the cache, else a new one, which is kept there. Of processes that ask at the same
/// time one searches the file and the others wait for it.
base::Result<FoundIndex> find_index(const IndexRequest& request, const Show& show);

}  // namespace pario::records
